// Starts Swagger UI on openapi.json of the same service. Tokens stay in the memory of the page, and
// nothing is asked of anybody else: no validator, no remote reference.
"use strict";

(() => {
  const main = document.getElementById("swagger-ui");
  const show = (api) => {
    document.title = api.info.title;
    // Behind a path prefix the service is where this page is.
    api.servers = [{ url: new URL("./", document.baseURI).href.replace(/\/$/, "") }];
    // Swagger UI reads every schema in the dialect of OpenAPI 3.1, and warns where another is named.
    // The schemas use nothing in which the two differ.
    delete api.jsonSchemaDialect;
    SwaggerUIBundle({
      spec: api,
      dom_id: "#swagger-ui",
      deepLinking: true,
      defaultModelsExpandDepth: 0,
      displayRequestDuration: true,
      docExpansion: "list",
      filter: true,
      persistAuthorization: false,
      validatorUrl: null,
      withCredentials: false,
    });
  };
  fetch("openapi.json", { credentials: "omit" })
    .then((response) => response.ok ? response.json() : Promise.reject(new Error(response.status)))
    .then(show)
    .catch((error) => { main.textContent = "openapi.json cannot be shown: " + error.message; });
})();
