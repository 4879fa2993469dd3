use super::*;

fn imported(text: &str) -> Imported {
    import(text, "a.sh").unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn commands_are_requests() {
    for (text, expected) in [
        ("curl http://a.test/b?c=1", "http:get(\"/b?c=1\", { redirects = false })"),
        ("curl -L a.test:8080", "base = \"http://a.test:8080\""),
        (
            "curl -XPUT -L http://a.test/ -d '{\"a\":[1]}' -H 'content-type: application/json'",
            "http:put(\"/\", { json = { a = { 1 } } })",
        ),
        ("curl -L http://a.test/ -d a=1 -d 'b=x%20y'", "body = \"a=1&b=x%20y\""),
        (
            "curl -L http://a.test/ --data-raw 'a b'",
            "http:post(\"/\", { headers = { [\"Content-Type\"] = \"application/x-www-form-urlencoded\" }, body = \"a b\" })",
        ),
        (
            "curl -L --json '{\"password\":\"x\"}' http://a.test/",
            "headers = { Accept = \"application/json\" }, json = { password = brunt.env(\"PASSWORD\") }",
        ),
        ("curl -LG http://a.test/ -d q=1 --data-urlencode 'r=a b&c'", "http:get(\"/?q=1&r=a+b%26c\")"),
        ("curl -LG http://a.test/ --url-query q=1 -d r=2", "http:get(\"/?r=2\")"),
        ("curl -LI http://a.test/", "http:head(\"/\")"),
        ("curl -L -u me:pw http://a.test/", "basic = { \"me\", brunt.env(\"PASSWORD\") }"),
        ("curl -L --digest -u me:pw http://a.test/", "digest = { \"me\", brunt.env(\"PASSWORD\") }"),
        ("curl -L http://me:pw@a.test/", "http:get(\"/\", { basic = { \"me\", brunt.env(\"PASSWORD\") } })"),
        ("curl -L -H 'Authorization: Bearer abc' http://a.test/", "bearer = brunt.env(\"TOKEN\")"),
        ("curl -L -H \"Authorization: Bearer $MINE\" http://a.test/", "bearer = brunt.env(\"MINE\")"),
        ("curl -L -H 'Authorization: Basic bWU6cHc=' http://a.test/", "basic = { \"me\", brunt.env(\"PASSWORD\") }"),
        (
            "curl -L -H 'X-Api-Key: abc' 'http://a.test/?api_key=abc'",
            "http:get(\"/?api_key=\" .. brunt.url_encode(brunt.env(\"API_KEY\")), { headers = { [\"X-Api-Key\"] = brunt.env(\"API_KEY\") } })",
        ),
        ("curl -L -b 'sid=abc' http://a.test/", "headers = { Cookie = brunt.env(\"COOKIE\") }"),
        (
            "curl -L -A 'B 1' -e http://r/ http://a.test/",
            "headers = { [\"User-Agent\"] = \"B 1\", Referer = \"http://r/\" }",
        ),
        (
            "curl -L -F a=1 -F 'f=@x/y.txt;type=text/plain' http://a.test/",
            "multipart = { a = \"1\", f = { filename = \"y.txt\", type = \"text/plain\", content = files[1] } }",
        ),
        ("curl -L --data-binary @b.json http://a.test/", "local files = { brunt.file(\"b.json\") }"),
        ("curl -L -H 'X-A: 1' -H 'x-a: 2' http://a.test/", "headers = { [\"X-A\"] = { \"1\", \"2\" } }"),
        ("curl -L http://a.test/a/../b/./c?d=/../", "http:get(\"/b/c?d=/../\")"),
        ("curl -L --path-as-is http://a.test/a/../b", "http:get(\"/a/../b\")"),
        (
            "curl -L -u a:b -H 'X: 1' -H 'Authorization: Token x' -b a=1 -H 'Cookie: b=2' http://a.test/",
            "headers = { X = \"1\", Authorization = brunt.env(\"AUTHORIZATION\"), Cookie = brunt.env(\"COOKIE\") }",
        ),
        ("curl -L -b a=1 -b 'b=2; c=3' http://a.test/", "headers = { Cookie = brunt.env(\"COOKIE\") }"),
        ("curl -L -H 'Content-Type:' -d a=1 http://a.test/", "http:post(\"/\", { body = \"a=1\" })"),
        ("curl -L --url-query 'a=b c' --url-query +x=y%20z http://a.test/?z", "http:get(\"/?z&a=b+c&x=y%20z\")"),
        ("curl -L -G -d '' http://a.test/x", "http:get(\"/x\")"),
        (
            "curl -L -F 'f=\"a;b,c\";type=text/x;charset=utf-8' http://a.test/",
            "multipart = { f = { filename = false, type = \"text/x;charset=utf-8\", content = \"a;b,c\" } }",
        ),
        (
            "curl -L -F f=@a.PNG http://a.test/",
            "f = { filename = \"a.PNG\", type = \"image/png\", content = files[1] }",
        ),
        ("curl -L --json '{\"a\":1,\"a\":2}' http://a.test/", "body = \"{\\\"a\\\":1,\\\"a\\\":2}\""),
        ("curl -L -A a -A b -e '' http://a.test/", "headers = { [\"User-Agent\"] = \"b\" }"),
        ("curl -L -A a -H 'user-agent: b' http://a.test/", "headers = { [\"user-agent\"] = \"b\" }"),
        ("curl -L -H 'User-Agent:' -A a http://a.test/", "headers = { [\"User-Agent\"] = false }"),
        (
            "curl -L --oauth2-bearer abc -H 'Authorization: Token x' http://a.test/",
            "headers = { Authorization = brunt.env(\"AUTHORIZATION\") }",
        ),
        ("curl -L -G -d q=1 'http://a.test/x?'", "http:get(\"/x?q=1\")"),
        (
            "curl -L -F 'a=1;filename=b.html' http://a.test/",
            "{ filename = \"b.html\", type = \"text/html\", content = \"1\" }",
        ),
        ("curl -L -r 0-9 http://a.test/", "headers = { Range = \"bytes=0-9\" }"),
        ("curl -L -r 600 http://a.test/", "headers = { Range = \"bytes=600-\" }"),
        ("curl -L --url-query q=1 'http://a.test/?z&'", "http:get(\"/?z&q=1\")"),
        ("curl http://a.test/ http://a.test/b", "base = \"http://a.test\", cookies = false"),
        ("curl -c jar http://a.test/ http://a.test/b", "brunt.http { base = \"http://a.test\" }"),
        ("curl -L -m 2.5 http://a.test/", "timeout = 2.5"),
        (
            "curl -L --compressed --http2-prior-knowledge http://a.test/",
            "{ base = \"http://a.test\", cookies = false, compressed = true, http = \"2\" }",
        ),
        ("curl -L \"http://a.test/users/$ID\"", "http:get(\"/users/\" .. brunt.url_encode(brunt.env(\"ID\")))"),
        ("curl -L http://a.test/x http://b.test/y", "http:get(\"http://b.test/y\")"),
        ("curl -L http://a.test/x --next -L -X DELETE http://a.test/y", "http:delete(\"/y\")"),
    ] {
        let lua = imported(text).lua;
        assert!(lua.contains(expected), "{text}\nlacks {expected}:\n{lua}");
        assert!(!lua.contains("abc") && !lua.contains("\"pw\"") && !lua.contains("bWU6"), "{text}\n{lua}");
    }
}

#[test]
fn what_is_no_request_is_told() {
    let text = "TOKEN=abc\n$ curl -sSo out.json --retry 3 -k --cacert ca.pem http://a.test/ > x | jq .\ncurl -e 'http://r/;auto' -F a=1 -H 'Content-Type: multipart/mixed' http://a.test/\ncurl -F a=1 -H 'Content-Type: multipart/form-data; boundary=b' http://a.test/\ncurl --digest -u me:pw --oauth2-bearer abc http://a.test/\n";
    let imported = imported(text);
    assert!(
        imported
            .lua
            .contains("-- line 2: what curl shows and keeps is left out: --silent, --show-error, --output, > x\n"),
        "{}",
        imported.lua
    );
    let left: Vec<String> = imported.left.iter().map(ToString::to_string).collect();
    for expected in [
        "line 1: not moved: TOKEN=…",
        "line 2: not moved: jq, which is not curl",
        "line 2: --retry: not moved",
        "line 2: -k: give -k",
        "--cacert ca.pem: give it to brunt run",
        "line 3: -e ;auto: the page that redirects is not named",
        "line 3: -H 'Content-Type: …' with -F: the form is sent as multipart/form-data",
        "line 4: -H 'Content-Type: …; boundary=…' with -F: curl adds a boundary of its own",
        "line 5: --oauth2-bearer with --digest: curl waits for a challenge",
    ] {
        assert!(left.iter().any(|left| left.contains(expected)), "{expected}: {left:?}");
    }
    assert!(!imported.lua.contains("abc"), "{}", imported.lua);
}

#[test]
fn what_is_not_understood_is_refused() {
    for (text, said) in [
        ("", "no command line in it that begins with curl"),
        ("wget http://a/", "no command line in it"),
        ("curl", "line 1: this curl has no URL"),
        ("\n\ncurl --no-such http://a/", "line 3: --no-such is not an option"),
        ("curl -? http://a/", "-? is not an option"),
        ("curl http://a/ -d", "-d wants a value"),
        ("curl --http3 http://a/", "--http3 cannot be moved"),
        ("curl 'http://a/[1-3]'", "stand for several"),
        ("curl http://a/ -d a -F b=c", "both -d and -F"),
        ("curl http://a/ -d @-", "reads standard input"),
        ("curl ftp://a/", "is not an HTTP URL"),
        ("curl http://$HOST/", "the host of a URL is a variable"),
        ("curl -H 'a b: c' http://a/", "-H takes"),
        ("curl -X 'a b' http://a/", "is not a method"),
        ("curl -X delete http://a/", "write -X DELETE"),
        ("curl -F 'f=@a,b' http://a/", "write an -F for each"),
        ("curl -F 'f=a;headers=\"X: 1\"' http://a/", "cannot be moved"),
        ("curl --aws-sigv4 a -u k:s http://a/", "signs each request anew"),
    ] {
        let error = import(text, "a.sh").unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn one_command_is_one_request() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of_words(&words("curl -d a=1 http://a/")).unwrap().method(), "POST");
    assert_eq!(of_words(&words("-I http://a/")).unwrap().method(), "HEAD");
    assert!(of_words(&words("http://a/ http://b/")).unwrap_err().to_string().contains("several requests"));
    assert!(single("curl http://a/; curl http://b/").unwrap_err().to_string().contains("several requests"));
}

#[test]
fn cookies_are_for_the_commands_that_keep_them() {
    let made = imported(
        "curl -c jar http://a.test/\ncurl http://a.test/b\ncurl -b jar http://a.test/c\ncurl -b old http://a.test/d",
    );
    let lua = &made.lua;
    assert!(lua.contains("http:get(\"/\", { redirects = false })"), "{lua}");
    assert!(lua.contains("http:get(\"/b\", { headers = { Cookie = false }, redirects = false })"), "{lua}");
    assert!(lua.contains("http:get(\"/c\", { redirects = false })"), "{lua}");
    let left: Vec<String> = made.left.iter().map(ToString::to_string).collect();
    assert!(matches!(left.as_slice(), [old] if old.contains("-b old: a file of cookies is not read")), "{left:?}");
}
