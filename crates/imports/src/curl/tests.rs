use super::*;

const NO_FILES: Files = &|_| Err(std::io::ErrorKind::NotFound.into());

fn imported(text: &str) -> Imported {
    import(text, "a.sh", NO_FILES).unwrap_or_else(|error| panic!("{text}: {error}"))
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
        ("curl -L --http3 https://a.test/", "{ base = \"https://a.test\", cookies = false, http = \"3\" }"),
        ("curl -L --http3-only https://a.test/", "{ base = \"https://a.test\", cookies = false, http = \"3\" }"),
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
fn files_urls_and_input_are_what_curl_makes_of_them() {
    let files: Files = &|file| match file {
        "fields" => Ok(b"X-A: 1\r\n\nX-B: c: d\n".to_vec()),
        "options" => Ok(b"# mine\nheader = \"X-C: \\\"1\\\"\"\n-d a=1\nurl = http://a.test/k\n".to_vec()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    for (text, expected) in [
        ("curl -H @fields http://a.test/", &["headers = { [\"X-A\"] = \"1\", [\"X-B\"] = \"c: d\" }"][..]),
        ("curl -K options -H 'Y: 2'", &["http:post(\"/k\", { headers = { [\"X-C\"] = \"\\\"1\\\"\", Y = \"2\" }"]),
        ("curl 'a.test/{x,y}[09-10]'", &["\"/x09\"", "\"/x10\"", "\"/y09\"", "\"/y10\""]),
        ("curl -g 'http://a.test/{x}?a[]=1|2'", &["http:get(\"/{x}?a[]=1|2\""]),
        ("curl -T d/b.csv http://a.test/in/", &["http:put(\"/in/b.csv\", { body = files[1]", "brunt.file(\"b.csv\")"]),
        (
            "curl -T b.csv -X POST -H 'Content-Type: text/csv' http://a.test/x",
            &["http:post(\"/x\", { headers = { [\"Content-Type\"] = \"text/csv\" }, body = files[1]"],
        ),
        ("curl -T '{a,b}' http://a.test http://a.test/c", &["http:put(\"/a\"", "http:put(\"/b\"", "http:get(\"/c\""]),
        (
            "curl --data-urlencode x@f http://a.test/",
            &["body = \"x=\" .. (brunt.url_encode(files[1]):gsub(\"%%20\", \"+\"))"],
        ),
        ("curl -G -d @f http://a.test/", &["http:get(\"/?\" .. files[1]", "gsub(\"[\\r\\n%z]\""]),
        (
            "curl -d @- http://a.test/ <<E\n{\n\"a\": $A}\nE\n",
            &["body = \"{\\\"a\\\": \" .. brunt.env(\"A\") .. \"}\""],
        ),
        ("cat <<'E' | curl --data-binary @- http://a.test/\na $b\nE\n", &["body = \"a $b\\n\""]),
        ("echo a  b | curl -d @- http://a.test/", &["body = \"a b\""]),
        ("cat f | curl -d @- http://a.test/", &["brunt.file(\"f\")"]),
        ("curl --json @- http://a.test/ < f.json", &["brunt.file(\"f.json\")"]),
        ("HOST=a.test:81 \ncurl http://$HOST/x", &["base = \"http://a.test:81\"", "http:get(\"/x\""]),
        ("if ! X=1 curl http://a.test/; then\n:\nfi", &["http:get(\"/\""]),
        (
            "curl -H 'Authorization: Token a' -H 'Authorization: Bearer b' http://a.test/",
            &["headers = { Authorization = { brunt.env(\"AUTHORIZATION\"), brunt.env(\"AUTHORIZATION_2\") } }"],
        ),
        ("curl -H 'Host: a' -H 'host: b' http://a.test/", &["headers = { Host = \"a\" }"]),
        ("curl -F 'a= b; type=text/x; charset=y' http://a.test/", &["type = \"text/x; charset=y\", content = \"b\""]),
        ("curl -u me http://a.test/", &["basic = { \"me\", brunt.env(\"PASSWORD\") }"]),
        ("curl -C 10 http://a.test/", &["headers = { Range = \"bytes=10-\" }"]),
        ("curl --request-target /a/../b http://a.test/x", &["http:get(\"/a/../b\""]),
        (
            "curl -F 'a=1;headers=\"X-P: a;b\";type=text/x' http://a.test/",
            &["{ filename = false, type = \"text/x\", headers = { [\"X-P\"] = \"a;b\" }, content = \"1\" }"],
        ),
        (
            "curl --aws-sigv4 aws:amz:eu-1:s3 -u k:s http://a.test/",
            &["aws = { key = \"k\", secret = brunt.env(\"AWS_SECRET\"), region = \"eu-1\", service = \"s3\" }"],
        ),
        ("curl --aws-sigv4 aws:amz -u k:s https://s3.eu-1.amazonaws.com/", &["region = \"eu-1\", service = \"s3\""]),
    ] {
        let lua = import(text, "a.sh", files).unwrap_or_else(|error| panic!("{text}: {error}")).lua;
        for expected in expected {
            assert!(lua.contains(expected), "{text}\nlacks {expected}:\n{lua}");
        }
    }
}

#[test]
fn what_is_no_request_is_told() {
    let text = "TOKEN=abc\n$ curl -sSo out.json --retry 3 -k --cacert ca.pem http://a.test/ > x | jq .\ncurl -e 'http://r/;auto' -F a=1 -H 'Content-Type: multipart/mixed' http://a.test/\ncurl -F a=1 -H 'Content-Type: multipart/form-data; boundary=b' http://a.test/\ncurl --digest -u me:pw --oauth2-bearer abc http://a.test/ || curl http://b.test/\ncurl 'http://a.test/?ä'\ncurl -T - http://a.test/ <a\n";
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
        "line 5: not moved: curl, which runs where the command before || fails",
        "line 6: letters beyond ASCII",
        "line 7: -T -: curl sends its input in chunks",
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
        ("curl --http1.0 http://a/", "--http1.0 cannot be moved"),
        ("curl 'http://a/[1-]'", "[1-] is no range"),
        ("curl http://a/{1..3}", "is no list of texts"),
        ("curl 'http://a/b c'", "the URL has a blank"),
        ("curl -G -d 'a b' http://a/", "--data-urlencode escapes it"),
        ("curl -F =a http://a/", "give the part a name"),
        ("curl -F \"f=@$A\" http://a/", "write its value"),
        ("curl -F \"f=$A;type=text/x\" http://a/", "write its value"),
        ("curl -T a -d b http://a/", "both -T and -d"),
        ("curl -T - http://a/", "reads standard input"),
        ("curl --request-target '*' http://a/", "is no path that begins with /"),
        ("curl -K missing http://a/", "-K missing: cannot read it"),
        ("curl --data-urlencode @- http://a/", "reads standard input"),
        ("curl -z 2020-01-01 http://a/", "write the field: -H 'If-Modified-Since: …'"),
        ("curl --aws-sigv4 osc -u k:s http://a/", "brunt signs as aws:amz does"),
        ("curl --aws-sigv4 aws:amz -u k:s http://a/", "names no region and service"),
        ("curl http://a/ -d a -F b=c", "both -d and -F"),
        ("curl http://a/ -d @-", "reads standard input"),
        ("curl ftp://a/", "is not an HTTP URL"),
        ("curl http://$HOST/", "the host of a URL is a variable"),
        ("curl -H 'a b: c' http://a/", "-H takes"),
        ("curl -X 'a b' http://a/", "is not a method"),
        ("curl -X delete http://a/", "write -X DELETE"),
        ("curl -F 'f=@a,b' http://a/", "write an -F for each"),
        ("curl -F 'f=a;headers=@x' http://a/", "takes 'Name: value' here"),
        ("curl -F 'f=a;encoder=base64' http://a/", "cannot be moved"),
    ] {
        let error = import(text, "a.sh", NO_FILES).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn one_command_is_one_request() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of_words(&words("curl -d a=1 http://a/"), NO_FILES).unwrap().method(), "POST");
    assert_eq!(of_words(&words("-I http://a/"), NO_FILES).unwrap().method(), "HEAD");
    assert!(of_words(&words("http://a/ http://b/"), NO_FILES).unwrap_err().to_string().contains("several requests"));
    assert!(single("curl http://a/; curl http://b/", NO_FILES).unwrap_err().to_string().contains("several requests"));
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
