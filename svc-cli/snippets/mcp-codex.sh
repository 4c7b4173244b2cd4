codex mcp add svc --url https://svc.example/mcp --bearer-token-env-var SVC_RETRIEVAL_TOKEN
