use super::*;

const SHOP: &str = r#"
openapi: 3.0.3
info: {title: The shop, version: 1.0.0}
servers: [{url: 'http://127.0.0.1:8080/{part}/', variables: {part: {default: shop}}}]
security: [{session: []}]
components:
  securitySchemes:
    session: {type: http, scheme: bearer}
    key: {type: apiKey, in: query, name: key}
    login: {type: http, scheme: basic}
    machine: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'http://a.test/t', scopes: {}}}}
  parameters:
    page: {name: page, in: query, schema: {type: integer, default: 2}}
  schemas:
    Item:
      type: object
      required: [id, name]
      properties: {id: {type: integer}, name: {type: string}, next: {$ref: '#/components/schemas/Item'}}
paths:
  /items:
    get:
      operationId: listItems
      summary: "Items, ten a page"
      security: []
      parameters:
        - $ref: '#/components/parameters/page'
        - {name: q, in: query, schema: {type: string}}
        - {name: tags, in: query, required: true, schema: {type: array, items: {type: string}, minItems: 2}}
        - {name: X-Trace, in: header, required: true, example: abc}
      responses: {'200': {description: ok}, default: {description: wrong}}
  /items/{end}:
    parameters: [{name: end, in: path, required: true, schema: {type: integer, example: 3}}]
    get:
      operationId: end
      responses:
        '200': {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}
        '404': {description: none}
    delete:
      security: [{key: []}, {}]
      responses: {2XX: {description: gone}}
  /cart:
    post:
      security: [{machine: [a, b]}]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}
      responses: {'201': {description: made}, '202': {description: later}}
    put:
      security: [{login: []}]
      requestBody: {content: {application/x-www-form-urlencoded: {example: {a: 1, b: x y}}}}
      responses: {'422': {description: always}}
"#;

#[test]
fn operations_are_functions_and_scenarios() {
    let imported = import(SHOP.as_bytes(), "shop.yaml").unwrap();
    for expected in [
        "base = \"http://127.0.0.1:8080\"",
        "-- GET /items: Items, ten a page\n-- It also takes q (query).\n-- Also documented: default (wrong).\nfunction api.list_items()\n",
        "http:get(\"/shop/items\", {",
        "query = { page = \"2\", tags = { \"text\", \"text\" } }",
        "headers = { [\"X-Trace\"] = \"abc\" }",
        "function api.operation_end(value_end)\n",
        "http:get(\"/shop/items/\" .. brunt.url_encode(tostring(value_end)), {",
        "name = \"GET /shop/items/{end}\"",
        "bearer = brunt.env(\"SESSION\")",
        "[\"is 200\"] = answer.status == 200",
        "[\"has id, name\"] = answer.ok and answer:has_jsonpath(\"$.id\") and answer:has_jsonpath(\"$.name\")",
        "[\"is 2XX\"] = math.floor(answer.status / 100) == 2",
        "[\"is 201 or 202\"] = answer.status == 201 or answer.status == 202",
        "ok = \"422\"",
        "form = { a = \"1\", b = \"x y\" }",
        "basic = { brunt.env(\"LOGIN_USER\"), brunt.env(\"LOGIN_PASSWORD\") }",
        "token_url = \"http://a.test/t\"",
        "scope = \"a b\"",
        "brunt.scenario(\"listItems\", function() api.list_items() end):inject { brunt.iterations_each(1, 1) }",
        "brunt.scenario(\"end\", function() api.operation_end(3) end)",
        "brunt.scenario(\"DELETE /items/{end}\", function() api.delete_items_end(3) end)",
    ] {
        assert!(imported.lua.contains(expected), "lacks {expected}:\n{}", imported.lua);
    }
    assert!(imported.left.is_empty(), "{:?}", imported.left);
    assert_eq!(imported.secrets, ["SESSION", "MACHINE_CLIENT", "MACHINE_SECRET", "LOGIN_USER", "LOGIN_PASSWORD"]);
}

#[test]
fn json_and_yaml_are_the_same() {
    let yaml = import(SHOP.as_bytes(), "shop").unwrap();
    let json = Value::from_yaml(SHOP).unwrap().to_json();
    assert_eq!(import(json.as_bytes(), "shop").unwrap(), yaml);
    let newer = SHOP.replace("openapi: 3.0.3", "openapi: 3.1.0");
    assert_eq!(import(newer.as_bytes(), "shop").unwrap(), yaml);
}

#[test]
fn what_is_missing_is_told() {
    let text = r##"{"openapi":"3.1.0","servers":[{"url":"/v1"}],"paths":{
        "/a/{id}":{"get":{"parameters":[{"$ref":"other.yaml#/x"}],"requestBody":{"$ref":"#/none"},"security":[{"none":[]}],
        "responses":{"200":{}}}},"/b":{"$ref":"b.yaml"}}}"##;
    let imported = import(text.as_bytes(), "a").unwrap();
    let left: Vec<String> = imported.left.iter().map(ToString::to_string).collect();
    for expected in [
        "servers: the description names no whole URL",
        "GET /a/{id}: not moved: a parameter by other.yaml#/x",
        "GET /a/{id}: the path's {id} is not described",
        "GET /a/{id}: not moved: a body by a reference",
        "GET /a/{id}: not moved: the security scheme none",
        "/b: not moved: a path by a reference",
    ] {
        assert!(left.iter().any(|left| left.contains(expected)), "{expected}: {left:?}");
    }
    assert!(imported.lua.contains("http:get(\"/v1/a/\" .."), "{}", imported.lua);
}

#[test]
fn what_is_no_description_is_refused() {
    for (text, said) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("a: b: c", "no YAML"),
        ("a: b", "it has no field openapi"),
        ("swagger: '2.0'", "it describes no operation"),
        ("swagger: '1.2'", "it is Swagger 1"),
        ("openapi: 4.0.0", "it is OpenAPI 4.0.0"),
        ("openapi: 3.0.0", "it describes no operation"),
        ("\u{0}\u{1}", "no YAML"),
    ] {
        let error = import(text.as_bytes(), "a").unwrap_err().to_string();
        assert!(error.contains(said), "{text:?}: {error}");
    }
}

#[test]
fn values_are_written_in_their_styles() {
    for (path, parameter, expected) in [
        ("/a/{p}", "in: path, example: [a, 'b c']", "api.op(\"a,b%20c\")"),
        ("/a/{p}", "in: path, style: matrix, explode: true, example: [a, b]", "api.op(\";p=a;p=b\")"),
        ("/a/{p}", "in: path, style: label, example: 5", "api.op(\".5\")"),
        ("/a/{p}", "in: path, explode: true, example: {r: 1, g: 2}", "api.op(\"r=1,g=2\")"),
        ("/a", "in: query, explode: false, example: {r: 1, g: x y}", "http:get(\"/a?p=r,1,g,x%20y\")"),
        ("/a", "in: query, explode: false, example: ['a,b', c]", "http:get(\"/a?p=a%2Cb,c\")"),
        ("/a", "in: query, allowReserved: true, example: '/x:[y]#&?'", "http:get(\"/a?p=/x:[y]%23%26?\")"),
        ("/a", "in: query, content: {application/json: {example: {a: 1}}}", "query = { p = \"{\\\"a\\\":1}\" }"),
        ("/a", "in: query, schema: {type: number}, example: 1e3", "query = { p = \"1000\" }"),
    ] {
        let text = format!(
            "openapi: 3.0.3\nservers: [{{url: 'http://a.test'}}]\npaths:\n  {path}:\n    get:\n      operationId: op\n      parameters: [{{name: p, {parameter}}}]\n"
        );
        let lua = import(text.as_bytes(), "a.yaml").unwrap().lua;
        assert!(lua.contains(expected), "{parameter}: lacks {expected}\n{lua}");
    }
    let nothing = "openapi: 3.0.3\npaths:\n  /a:\n    get:\n      parameters: [{name: p, in: query, schema: {type: string, default: null}}]\n";
    assert!(!import(nothing.as_bytes(), "a").unwrap().lua.contains("query ="));
}

#[test]
fn bodies_are_as_their_media_types_say() {
    for (kind, media, expected) in [
        ("application/x-www-form-urlencoded", "example: {a: [p, q]}", "form = { a = { \"p\", \"q\" } }"),
        (
            "application/x-www-form-urlencoded",
            "example: {a: [p, q]}, encoding: {a: {explode: false}}",
            "form = { a = \"p,q\" }",
        ),
        ("multipart/form-data", "example: {j: {k: 1}}", "type = \"application/json\""),
        (
            "multipart/form-data",
            "schema: {properties: {f: {type: string, format: binary}}}, encoding: {f: {contentType: 'image/png, image/gif'}}",
            "type = \"image/png\"",
        ),
        (
            "'application/json; charset=utf-8'",
            "example: {a: 1}",
            "[\"Content-Type\"] = \"application/json; charset=utf-8\"",
        ),
        ("application/json", "example: {id: 12345678901234567890}", "body = \"{\\\"id\\\":12345678901234567890}\""),
        ("application/json", "schema: {type: array, prefixItems: [{const: 1}, {const: s}]}", "json = { 1, \"s\" }"),
        ("application/json", "schema: {$ref: '#/components/schemas/N'}", "kids = brunt.array {}"),
        (
            "application/json",
            "schema: {$ref: 'other.yaml#/S'}",
            "-- POST /a: body is not described here, but by other.yaml#/S",
        ),
    ] {
        let text = format!(
            "openapi: 3.1.0\nservers: [{{url: 'http://a.test'}}]\npaths:\n  /a:\n    post:\n      requestBody: {{content: {{{kind}: {{{media}}}}}}}\ncomponents:\n  schemas:\n    N: {{type: object, required: [kids], properties: {{kids: {{type: array, items: {{$ref: '#/components/schemas/N'}}}}}}}}\n"
        );
        let lua = import(text.as_bytes(), "a.yaml").unwrap().lua;
        assert!(lua.contains(expected), "{kind} {media}: lacks {expected}\n{lua}");
    }
}
