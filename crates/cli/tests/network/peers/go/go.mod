module brunt-http2-peer

go 1.19
