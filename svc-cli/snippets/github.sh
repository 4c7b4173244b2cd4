gh api repos/OWNER/NAME/hooks --method POST --input - <<JSON
{
  "name": "web",
  "active": true,
  "events": ["push", "pull_request", "workflow_run", "repository"],
  "config": {
    "url": "https://svc.example/ingest/forge",
    "content_type": "json",
    "secret": "$SVC_FORGE_WEBHOOK_SECRET"
  }
}
JSON
