// The reading page: reads openapi.json of the same service and lays all of it open.
// Text of the document is only ever placed as text, never as markup.
"use strict";

(() => {
  const byId = (id) => document.getElementById(id);
  let api;

  // Building elements.

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
    return element;
  }

  // Shows a phrase; backticks mark code.
  const phrase = (text) =>
    (text || "").split("`").map((piece, at) => at % 2 ? make("code", {}, piece) : piece);

  // Shows prose; blank lines part paragraphs.
  const prose = (text) =>
    (text || "").split("\n\n").filter(Boolean).map((paragraph) => make("p", {}, phrase(paragraph)));

  // Opens to something that is only made when it is looked at, so that a type may hold itself.
  function unfold(label, content, attributes) {
    const details = make("details", attributes, make("summary", {}, label));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(content());
    });
    return details;
  }

  // Reading schemas.

  const refName = (schema) => schema && schema.$ref && schema.$ref.split("/").pop();

  // Follows a reference; what stands beside it comes first.
  function resolve(schema) {
    if (schema === true || schema == null) return {};
    if (!schema.$ref) return schema;
    const { $ref: _, ...beside } = schema;
    return { ...resolve(api.components.schemas[refName(schema)]), ...beside };
  }

  // Parts null from a schema that allows it beside one other thing.
  function nullable(schema) {
    const rest = Array.isArray(schema.anyOf) && schema.anyOf.filter((it) => it.type !== "null");
    if (rest && rest.length === 1 && rest.length < schema.anyOf.length) {
      const { anyOf: _, ...beside } = schema;
      return [{ ...rest[0], ...beside }, true];
    }
    if (Array.isArray(schema.type) && schema.type.includes("null")) {
      const types = schema.type.filter((type) => type !== "null");
      return [{ ...schema, type: types.length === 1 ? types[0] : types }, true];
    }
    return [schema, false];
  }

  // Returns the constant text by which a form is told from the others.
  const tag = (schema) => Object.values(resolve(schema).properties || {})
    .map((member) => member.const).find((value) => typeof value === "string");

  const alternatives = (schema) => schema.enum ? null : schema.oneOf || schema.anyOf;

  // Lists the members: the required ones as they are declared, then the others.
  function members(schema) {
    const properties = schema.properties || {};
    const required = (schema.required || []).filter((name) => name in properties);
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    return [...required.map((name) => [name, true]), ...optional.map((name) => [name, false])];
  }

  function kind(given) {
    const [schema, orNull] = nullable(given);
    const full = resolve(schema);
    const only = full.enum && full.enum.length === 1 ? full.enum[0] : full.const;
    let text = only !== undefined ? "always " + JSON.stringify(only)
      : full.enum ? "one of " + full.enum.length
      : alternatives(full) ? "one of " + alternatives(full).length + " forms"
      : full.type === "array" ? "list"
      : full.type ? [].concat(full.type).join(" or ")
      : "any value";
    if (full.type === "array" && full.items !== true) text += " of ";
    const parts = [text];
    if (full.type === "array" && full.items !== true) parts.push(...kind(full.items));
    const name = refName(schema);
    if (name) parts.unshift(make("a", { href: "#type-" + name }, name), " · ");
    if (orNull) parts.push(" or null");
    return parts;
  }

  function bounds(given) {
    const schema = resolve(nullable(given)[0]);
    const found = [];
    const range = (least, most, unit) => {
      const [low, high] = [schema[least], schema[most]].map((it) => it && it.toLocaleString("en"));
      if (low && high) found.push(low + " to " + high + unit);
      else if (low) found.push("at least " + low + unit);
      else if (high) found.push("at most " + high + unit);
    };
    if (schema.format && !/^u?int/.test(schema.format)) found.push(schema.format);
    range("minimum", "maximum", "");
    range("minLength", "maxLength", " characters");
    range("minItems", "maxItems", " items");
    if (schema.pattern) found.push("matches " + schema.pattern);
    if ("default" in schema) found.push("default " + JSON.stringify(schema.default));
    if (schema.properties && schema.additionalProperties === false) found.push("no other members");
    return found.length > 0 && make("div", { class: "bounds" }, found.join(" · "));
  }

  // Returns what is inside a schema, or nothing when its line says all.
  function inside(given, root) {
    const schema = resolve(nullable(given)[0]);
    const named = !root && schema.type === "array" && schema.items !== true ? schema.items : null;
    if (named) return inside(named, false);
    if (root && schema.type === "array" && schema.items !== true) {
      return make("div", {}, make("p", {}, "Each item: ", kind(schema.items)), inside(schema.items) || "");
    }
    if (schema.enum && schema.enum.length > (root ? 0 : 1)) {
      const said = new Map((schema.oneOf || []).map((value) => [value.const, value.description]));
      return make("ul", { class: "members", "data-holds": "values" },
        schema.enum.map((value) => make("li", {},
          make("code", { class: "name" }, JSON.stringify(value)), " ", phrase(said.get(value)))));
    }
    if (alternatives(schema)) {
      return make("div", { "data-holds": "forms" },
        alternatives(schema).map((form) => make("div", { class: "alternative" },
          make("h4", {}, tag(form) || "Form", " ", make("span", { class: "kind" }, kind(form))),
          prose(resolve(form).description), bounds(form), inside(form, true) || "")));
    }
    if (schema.properties) {
      const row = ([name, required]) => {
        const member = schema.properties[name];
        const deeper = inside(member, false);
        return make("li", {},
          make("code", { class: "name" }, name), " ",
          make("span", { class: "kind" }, kind(member)), " ",
          !required && make("span", { class: "optional" }, "optional"),
          prose(member.description || resolve(nullable(member)[0]).description),
          bounds(member),
          deeper && unfold(deeper.dataset.holds, () => inside(member, false)));
      };
      return make("ul", { class: "members", "data-holds": "members" }, members(schema).map(row));
    }
    if (schema.propertyNames) {
      return make("div", { "data-holds": "names" },
        make("p", {}, "Each name: ", kind(schema.propertyNames),
          ". Each value: ", kind(schema.additionalProperties), "."),
        inside(schema.propertyNames, true) || "");
    }
    return null;
  }

  // Makes a value that a schema accepts.
  function sample(given, depth = 0) {
    const schema = resolve(nullable(given)[0]);
    if ("const" in schema) return schema.const;
    if ("default" in schema) return schema.default;
    if (schema.examples) return schema.examples[0];
    if (schema.enum) return schema.enum[0];
    if (alternatives(schema)) return sample(alternatives(schema)[0], depth);
    if (schema.format === "uuid") return "6f1c2a34-5b6d-4e7f-8a90-b1c2d3e4f506";
    if (schema.format === "date-time") return "2026-01-02T03:04:05Z";
    if (schema.type === "object") {
      if (depth > 8) return {};
      return Object.fromEntries(members(schema)
        .map(([name]) => [name, sample(schema.properties[name], depth + 1)]));
    }
    if (schema.type === "array") return [sample(schema.items, depth + 1)];
    if (schema.type === "integer" || schema.type === "number") return schema.minimum || 0;
    return { string: "string", boolean: true, null: null }[schema.type] ?? {};
  }

  // Gathers the names of types and members, for the search.
  function words(schema, seen) {
    if (Array.isArray(schema)) return schema.forEach((item) => words(item, seen));
    if (!schema || typeof schema !== "object") return;
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === "$ref" && !seen.has(refName(schema))) {
        seen.add(refName(schema));
        words(api.components.schemas[refName(schema)], seen);
      } else {
        if (keyword === "properties") Object.keys(value).forEach((name) => seen.add(name));
        if (keyword === "enum") value.forEach((it) => seen.add(String(it)));
        words(value, seen);
      }
    }
  }

  // Showing operations.

  function bytes(count) {
    const unit = [["MiB", 1 << 20], ["KiB", 1 << 10]].find(([, size]) => count % size === 0);
    return unit ? count / unit[1] + " " + unit[0] : count.toLocaleString("en") + " bytes";
  }

  function authority(operation) {
    if ((operation.security || []).length === 0) return "open";
    const accepted = operation["x-authorities"] || [];
    return accepted.join(" or ") || "signature";
  }

  const bodies = (operation) => Object.entries((operation.requestBody || { content: {} }).content);
  const reply = (operation) => operation.responses["200"].content["application/json"].schema;

  function shape(title, schema) {
    return make("section", {}, make("h4", {}, title, " ", make("span", { class: "kind" }, kind(schema))),
      prose(resolve(schema).description), bounds(schema), inside(schema, true) || "");
  }

  function parameters(operation) {
    return operation.parameters && make("section", {}, make("h4", {}, "Parameters"),
      make("ul", { class: "members" }, operation.parameters.map((parameter) => make("li", {},
        make("code", { class: "name" }, parameter.name), " ",
        make("span", { class: "kind" }, parameter.schema.type, " in the ", parameter.in), " ",
        !parameter.required && make("span", { class: "optional" }, "optional"),
        prose(parameter.description)))));
  }

  function statuses(operation) {
    const refused = Object.entries(operation.responses).filter(([status]) => status !== "200");
    if (refused.length === 0) return null;
    const row = ([status, response]) => {
      const examples = Object.values(response.content["application/json"].examples || {});
      const headers = Object.entries(response.headers || {});
      return make("tr", {}, make("th", { scope: "row" }, status), make("td", {},
        prose(response.description),
        examples.map((example) => make("div", {}, make("code", {}, JSON.stringify(example.value)))),
        headers.map(([name, header]) => make("div", {},
          make("code", {}, name + ": " + (header.schema.const || ""))))));
    };
    return make("section", {}, make("h4", {}, "Other statuses"),
      make("table", {}, make("thead", {}, make("tr", {},
        make("th", { scope: "col" }, "Status"), make("th", { scope: "col" }, "When, and its body"))),
      make("tbody", {}, refused.map(row))),
      make("p", { class: "quiet" }, "Every such body is a ",
        make("a", { href: "#type-ProblemBody" }, "ProblemBody"), "."));
  }

  function samples(operation) {
    const request = bodies(operation)[0];
    const show = (title, content) => {
      const [published] = Object.values(content.examples || {});
      const value = published ? published.value : sample(content.schema);
      return make("section", {}, make("h4", {}, title),
        make("pre", { tabindex: "0" }, JSON.stringify(value, null, 2)));
    };
    return make("div", {}, request && show("Sample request", request[1]),
      show("Sample reply", operation.responses["200"].content["application/json"]));
  }

  function describe(operation) {
    const limits = [["x-body-bytes-max", "request"], ["x-reply-bytes-max", "reply"]]
      .filter(([name]) => name in operation)
      .map(([name, what]) =>
        [make("span", { class: "limit" }, what + " ≤ " + bytes(operation[name])), " "]);
    const text = make("div", {}, prose(operation.description), make("p", {}, limits),
      parameters(operation),
      bodies(operation).map(([type, content]) => shape("Request, " + type, content.schema)),
      shape("Reply", reply(operation)), statuses(operation));
    return make("div", { class: "inside" }, make("div", { class: "columns" }, text,
      samples(operation)));
  }

  // The page.

  function heading(path, method, operation) {
    return [make("span", { class: "method " + method }, method.toUpperCase()),
      make("span", { class: "path" }, path), make("span", {}, operation.summary),
      make("span", { class: "authority", title: "Who may call it" }, authority(operation))];
  }

  function entry(path, method, operation) {
    const id = operation.operationId;
    const element = make("article", { class: "operation", id },
      make("h3", { class: "heading" }, heading(path, method, operation)), describe(operation));
    const found = new Set([method, path, id, operation.summary, authority(operation), ...operation.tags]);
    (operation.parameters || []).forEach((parameter) => found.add(parameter.name));
    words([operation.requestBody, reply(operation)], found);
    const link = make("li", {}, make("a", { href: "#" + id, title: path }, operation.summary));
    return { element, link, text: [...found].join(" ").toLowerCase() };
  }

  function show() {
    document.title = api.info.title;
    byId("title").textContent = api.info.title;
    byId("version").textContent = api.info.version;

    const groups = api.tags.map((tag) => ({ tag, entries: [] }));
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const group = groups.find(({ tag }) => operation.tags.includes(tag.name));
        if (group) group.entries.push(entry(path, method, operation));
      }
    }
    for (const group of groups) {
      group.section = make("section", { "aria-label": group.tag.name }, make("h2", {}, group.tag.name),
        prose(group.tag.description), group.entries.map(({ element }) => element));
      group.list = make("div", {}, make("p", {}, group.tag.name),
        make("ul", {}, group.entries.map(({ link }) => link)));
    }
    const types = make("section", { "aria-label": "types" }, make("h2", {}, "Types"),
      Object.entries(api.components.schemas).map(([name, schema]) =>
        unfold([make("code", { class: "name" }, name), make("span", { class: "kind" }, kind(schema))],
          () => make("div", { class: "inside" }, prose(schema.description), bounds(schema),
            inside(schema, true) || ""),
          { class: "type", id: "type-" + name })));
    byId("contents").replaceChildren(...groups.map(({ list }) => list),
      make("p", {}, make("a", { href: "#types" }, "Types")));
    types.id = "types";
    byId("main").replaceChildren(...prose(api.info.description),
      ...groups.map((group) => group.section), types);

    const search = () => {
      const wanted = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
      let [left, all] = [0, 0];
      for (const { section, list, entries } of groups) {
        for (const { element, link, text } of entries) {
          element.hidden = link.hidden = !wanted.every((word) => text.includes(word));
          left += !element.hidden;
          all += 1;
        }
        section.hidden = list.hidden = entries.every(({ element }) => element.hidden);
      }
      byId("found").textContent = wanted.length ? left + " of " + all + " operations" : "";
    };
    byId("search").addEventListener("input", search);
    search();
    follow();
  }

  // Opens what the address points to.
  function follow() {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.hidden) {
      byId("search").value = "";
      byId("search").dispatchEvent(new Event("input"));
    }
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView();
  }

  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      byId("search").focus();
    }
  });

  fetch("openapi.json", { credentials: "omit" })
    .then((response) => response.ok ? response.json() : Promise.reject(new Error(response.status)))
    .then((document) => { api = document; show(); })
    .catch((error) => { byId("state").textContent = "openapi.json cannot be shown: " + error.message; });
})();
