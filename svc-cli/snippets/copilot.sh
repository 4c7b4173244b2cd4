export COPILOT_OTEL_ENABLED=true
export OTEL_EXPORTER_OTLP_ENDPOINT=https://svc.example
export OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer $SVC_TOKEN"
