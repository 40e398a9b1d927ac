//! The tokio driver of an agent.
