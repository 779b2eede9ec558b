// Package otlp reads what --trace-file writes with the definitions that OpenTelemetry
// publishes. It is a module of its own: those are no dependency of the server.
package otlp
