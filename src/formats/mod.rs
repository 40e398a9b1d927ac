//! Fabrics, routes and tables as files.
