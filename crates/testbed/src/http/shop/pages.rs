//! The shop's pages in HTML, and what a browser loads with them.

use super::Reply;

pub(super) fn home(user: Option<&str>) -> Reply {
    let greeting = match user {
        Some(user) => format!("<p>Hello {user}, here is your <a href=\"/shop/account\">account</a>.</p>"),
        None => "<p><a href=\"/shop/login\">Log in</a></p>".to_owned(),
    };
    Reply::html(format!(
        "<!doctype html>\n<html><head><title>The shop</title>\n\
         <link rel=\"stylesheet\" href=\"/shop/style.css\"><script src=\"/shop/app.js\"></script></head>\n\
         <body><img src=\"/shop/logo.svg\" alt=\"\">\n{greeting}\n\
         <p><a href=\"/shop/items\">Items</a>, and what is in your cart.</p></body></html>\n"
    ))
}

/// A form with a token that comes back with it.
pub(super) fn login(token: &str) -> Reply {
    Reply::html(format!(
        "<!doctype html>\n<html><head><title>Log in</title></head><body>\n\
         <form method=\"post\" action=\"/shop/login\">\n\
         <input type=\"hidden\" name=\"token\" value=\"{token}\">\n\
         <input name=\"user\"><input name=\"password\" type=\"password\"><button>Log in</button>\n\
         </form></body></html>\n"
    ))
}

pub(super) fn resource(name: &str) -> Reply {
    match name {
        "style.css" => Reply::new(200, "text/css", "body { font: 16px sans-serif; margin: 2em }\n".repeat(20)),
        "app.js" => Reply::new(200, "text/javascript", "console.log('the shop is open');\n".repeat(100)),
        _ => Reply::new(
            200,
            "image/svg+xml",
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 8 8\"><circle cx=\"4\" cy=\"4\" r=\"3\"/></svg>\n",
        ),
    }
    .with("Cache-Control", "max-age=3600")
}
