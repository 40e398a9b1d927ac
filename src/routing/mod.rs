//! Routes and tables, proved free of deadlock.
