// Package trace writes what the server does as spans of OpenTelemetry, a line of
// OTLP/JSON for each: the format of files that the Collector's otlpjsonfile receiver
// reads.
//
// Start with [New]. [Tracer.Serve] begins the span of a request, [Start] one inside
// of what its context belongs to; [Span.End] has it written. A nil *Tracer and a nil
// *Span do nothing, so code does not ask whether there is a trace, and pays nothing
// where there is none.
//
// A span tells what was done, how long it took and how it ended. Nothing of
// contents, arguments, paths or values of variables is ever an attribute.
package trace
