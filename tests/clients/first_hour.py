"""Posts a model call, finds it and reads it, with the client that openapi-python-client generates.

Usage: first_hour.py BASE_URL OPERATOR_TOKEN INGEST_TOKEN; the folder of the client is the working folder.
"""

import datetime
import sys
import uuid

from agent_work_evidence_service_client import AuthenticatedClient
from agent_work_evidence_service_client.api.context import context_discover
from agent_work_evidence_service_client.api.evidence import evidence_read
from agent_work_evidence_service_client.api.ingest import ingest_gateway
from agent_work_evidence_service_client.api.investigation import ci_failures, session_dossier
from agent_work_evidence_service_client.models import (
    Capture,
    CiResult,
    ContextDiscoveryRequest,
    EvidenceReadRequest,
    GatewayIngestRequest,
    GatewayPayload,
    GatewayProvider,
    PartText,
    ProblemBody,
    RepositoryProvider,
    SessionDossier,
    TimelineEventInferenceCall,
)

base_url, operator_token, ingest_token = sys.argv[1:]
operator = AuthenticatedClient(base_url, operator_token)
sender = AuthenticatedClient(base_url, ingest_token)

payload = GatewayPayload.from_dict(
    {
        "litellm_call_id": "call-1",
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "Why does the pager fire at night?"}],
        "response": {
            "choices": [{"message": {"role": "assistant", "content": "A cron job restarts it."}}]
        },
    }
)
now = datetime.datetime.now(datetime.timezone.utc)
call = GatewayIngestRequest(
    provider=GatewayProvider.GATEWAY_A,
    session_id="fix-the-pager",
    payload=payload,
    capture=Capture(id=uuid.uuid4(), observed_at=now),
)
receipt = ingest_gateway.sync(client=sender, body=call)
assert receipt.stored is True, receipt

question = ContextDiscoveryRequest(schema_version=1, query="cron pager", max_bytes=16_384)
found = context_discover.sync(client=operator, body=question)
[candidate] = found.items
assert candidate.session_id == "fix-the-pager", candidate
reference = candidate.preview.reference

read = EvidenceReadRequest(
    schema_version=1, session_id=candidate.session_id, references=[reference]
)
[item] = evidence_read.sync(client=operator, body=read).items
assert isinstance(item.part, PartText), item.part
assert "pager" in item.part.content or "cron" in item.part.content, item.part

dossier = session_dossier.sync(candidate.session_id, client=operator, explain=True)
assert isinstance(dossier, SessionDossier), dossier
[event] = dossier.timeline
assert isinstance(event, TimelineEventInferenceCall), event

failures = ci_failures.sync(
    client=operator,
    captured_after=now - datetime.timedelta(days=1),
    captured_before=now,
    repository_provider=RepositoryProvider.GITHUB,
    repository_host="GitHub.com",
    repository_id="514200317",
    result=CiResult.TIMED_OUT,
    workflow_name="",
    limit=10,
    explain=True,
)
assert failures.outcomes == [] and failures.result == CiResult.TIMED_OUT, failures

refused = ci_failures.sync(
    client=operator,
    captured_after=now - datetime.timedelta(days=1),
    captured_before=now,
    repository_id="514200317",
)
assert isinstance(refused, ProblemBody), refused
print("posted, found, read")
