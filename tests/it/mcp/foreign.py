"""Drives the service with the client of PyPI's `mcp`: arguments are the mode, then a URL or a program."""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main():
    mode, transport, target, session, token = sys.argv[1:]
    if transport == "http":
        headers = {"Authorization": f"Bearer {token}"}
        server = streamable_http_client(target, http_client=httpx2.AsyncClient(headers=headers))
    else:
        env = dict(os.environ, SVC_TOKEN=token)
        server = StdioServerParameters(command=target, args=["mcp"], env=env)
    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        templates = await client.list_resource_templates()
        # The client checks a structured result against the schema of its tool.
        found = await client.call_tool("find_evidence", {"query": "pager window"})
        calls = await client.call_tool("open_evidence", {"session_id": session})
        refused = await client.call_tool("open_evidence", {"session_id": "elsewhere"})
        call = calls.structured_content["calls"][0]["call"]
        address = f"svc://session/{session}/call/{call}/part/input/0/0"
        part = await client.read_resource(address)
        print(
            json.dumps(
                {
                    "version": client.session.protocol_version,
                    "tools": [tool.name for tool in tools.tools],
                    "templates": len(templates.resource_templates),
                    "found": found.structured_content,
                    "text": found.content[0].text,
                    "refused": refused.is_error and refused.content[0].text,
                    "part": part.contents[0].text,
                }
            )
        )


asyncio.run(main())
