curl --fail-with-body --silent --show-error "$GITEA_URL/api/v1/repos/OWNER/NAME/hooks" \
  --header "Authorization: token $GITEA_TOKEN" \
  --header "Content-Type: application/json" \
  --data-binary @- <<JSON
{
  "type": "gitea",
  "active": true,
  "events": ["push", "pull_request", "workflow_run"],
  "config": {
    "url": "https://svc.example/ingest/forge",
    "content_type": "json",
    "secret": "$SVC_FORGE_WEBHOOK_SECRET"
  }
}
JSON
