// `https://jslib.k6.io/httpx`: a session that adds a base address, headers and tags to requests of `k6/http`.
import http from "k6/http";

/** A request of `Httpx.batch`. */
export class Request {
    constructor(method, url, body, params) {
        this.method = method;
        this.url = url;
        this.body = body;
        this.params = params;
    }
}

/** A class of requests with one method. */
function requestOf(method) {
    return class extends Request {
        constructor(url, body, params) {
            super(method, url, body, params);
        }
    };
}

export const Get = requestOf("GET");
export const Post = requestOf("POST");
export const Put = requestOf("PUT");
export const Patch = requestOf("PATCH");
export const Delete = requestOf("DELETE");
export const Head = requestOf("HEAD");
export const Options = requestOf("OPTIONS");
export const Trace = requestOf("TRACE");

/** A session. Its options are `baseURL` and all that a request of `k6/http` takes. */
export class Httpx {
    constructor({ baseURL = "", headers = {}, tags = {}, ...params } = {}) {
        this.baseURL = baseURL;
        this.headers = { ...headers };
        this.tags = { ...tags };
        this.params = params;
    }

    setBaseUrl(url) {
        this.baseURL = url;
    }

    addHeader(name, value) {
        this.headers[name] = value;
    }

    addHeaders(headers) {
        Object.assign(this.headers, headers);
    }

    clearHeader(name) {
        delete this.headers[name];
    }

    addTag(name, value) {
        this.tags[name] = value;
    }

    addTags(tags) {
        Object.assign(this.tags, tags);
    }

    clearTag(name) {
        delete this.tags[name];
    }

    /** A path as an address. */
    #url(url) {
        return typeof url === "string" && /^[a-z][a-z0-9+.-]*:/i.test(url) ? url : url?.url === undefined ? this.baseURL + url : url;
    }

    /** The parameters of a request, with those of its session. */
    #params(params) {
        const { headers, tags, ...rest } = params ?? {};
        return { ...this.params, ...rest, headers: { ...this.headers, ...headers }, tags: { ...this.tags, ...tags } };
    }

    request(method, url, body, params) {
        return http.request(method, this.#url(url), body, this.#params(params));
    }

    asyncRequest(method, url, body, params) {
        return http.asyncRequest(method, this.#url(url), body, this.#params(params));
    }

    /** Sends requests together; `params` goes for each of them. */
    batch(requests, params) {
        const shared = params ?? {};
        return http.batch(requests.map((request) => {
            const { method, url, body, params: own } = typeof request === "string" ? new Get(request) : request;
            const merged = { ...shared, ...own, headers: { ...shared.headers, ...own?.headers }, tags: { ...shared.tags, ...own?.tags } };
            return { method, url: this.#url(url), body, params: this.#params(merged) };
        }));
    }
}

for (const method of ["get", "post", "put", "patch", "delete", "head", "options", "trace"]) {
    const name = method.toUpperCase();
    Httpx.prototype[method] = function (url, body, params) {
        return this.request(name, url, body, params);
    };
    Httpx.prototype[`async${name[0]}${method.slice(1)}`] = function (url, body, params) {
        return this.asyncRequest(name, url, body, params);
    };
}

export default { Httpx, Request, Get, Post, Put, Patch, Delete, Head, Options, Trace };
