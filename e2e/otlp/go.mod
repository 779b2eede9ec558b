module github.com/perstack-ai/perstack-base/e2e/otlp

go 1.26.0

require (
	go.opentelemetry.io/proto/otlp v1.11.1
	google.golang.org/protobuf v1.36.12
)
