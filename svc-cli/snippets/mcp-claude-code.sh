claude mcp add --transport http svc https://svc.example/mcp --header "Authorization: Bearer $SVC_RETRIEVAL_TOKEN"
