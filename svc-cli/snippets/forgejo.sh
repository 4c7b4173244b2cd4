curl --fail-with-body --silent --show-error "$FORGEJO_URL/api/v1/repos/OWNER/NAME/hooks" \
  --header "Authorization: token $FORGEJO_TOKEN" \
  --header "Content-Type: application/json" \
  --data-binary @- <<JSON
{
  "type": "forgejo",
  "active": true,
  "events": ["push", "pull_request"],
  "config": {
    "url": "https://svc.example/ingest/forge",
    "content_type": "json",
    "secret": "$SVC_FORGE_WEBHOOK_SECRET"
  }
}
JSON
