// Package otlp reads what --trace-file writes with the definitions that OpenTelemetry
// publishes, and with what the Collector's receiver reads it with. It is a module of
// its own: those are no dependencies of the server.
package otlp
