//! Sends and receives frames for an agent.
