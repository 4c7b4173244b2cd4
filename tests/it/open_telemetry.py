"""Calls a mock model through a client that OpenTelemetry instruments, and exports what it records."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from openai import OpenAI
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

ANSWERS = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "src/pager.rs"}'},
            }
        ],
    },
    {"role": "assistant", "content": "The window is half-open."},
]


class Model(BaseHTTPRequestHandler):
    """Answers each request with the next answer."""

    answered = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        answer = ANSWERS[Model.answered]
        Model.answered += 1
        body = json.dumps(
            {
                "id": f"chatcmpl-{Model.answered}",
                "object": "chat.completion",
                "created": 1,
                "model": "mock-1-2026",
                "choices": [
                    {
                        "index": 0,
                        "message": answer,
                        "finish_reason": "tool_calls" if answer["content"] is None else "stop",
                    }
                ],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 7,
                    "total_tokens": 107,
                    "prompt_tokens_details": {"cached_tokens": 40},
                },
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    service, token, session = sys.argv[1:4]
    model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    headers = {"authorization": f"Bearer {token}"}
    resource = Resource.create({"session.id": session})
    tracers = TracerProvider(resource=resource)
    tracers.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{service}/v1/traces", headers=headers))
    )
    trace.set_tracer_provider(tracers)
    loggers = LoggerProvider(resource=resource)
    loggers.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{service}/v1/logs", headers=headers))
    )
    set_logger_provider(loggers)
    OpenAIInstrumentor().instrument()
    client = OpenAI(base_url=f"http://127.0.0.1:{model.server_port}/v1", api_key="unused")
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is the window of the pager closed?"},
    ]
    first = client.chat.completions.create(model="mock-1", messages=messages)
    messages += [
        first.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": "call_1", "content": "fn window() {}"},
    ]
    client.chat.completions.create(model="mock-1", messages=messages)
    flushed = [tracers.force_flush(), loggers.force_flush()]
    tracers.shutdown()
    loggers.shutdown()
    print(json.dumps({"answered": Model.answered, "flushed": flushed}))


main()
