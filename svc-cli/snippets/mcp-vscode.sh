code --add-mcp '{"name":"svc","type":"http","url":"https://svc.example/mcp","headers":{"Authorization":"Bearer ${env:SVC_RETRIEVAL_TOKEN}"}}'
