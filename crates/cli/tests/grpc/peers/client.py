"""Calls the built-in echo in every kind, and checks what comes back."""

import sys

import grpc

directory, address = sys.argv[1:]
sys.path.insert(0, directory)
messages, services = grpc.protos_and_services("echo.proto")
Text = messages.Text

with grpc.insecure_channel(address) as channel:
    echo = services.EchoStub(channel)
    assert echo.Say(Text(text="a")).text == "a"
    assert echo.Say(Text(text="x" * 1_000_000)).text == "x" * 1_000_000
    assert [text.number for text in echo.Repeat(Text(times=1000))] == list(range(1, 1001))
    collected = echo.Collect(Text(text=str(number)) for number in range(100))
    assert (collected.text, collected.number) == ("99", 100)
    said = [str(number) for number in range(100)]
    assert [text.text for text in echo.Chat(Text(text=text) for text in said)] == said
    try:
        echo.Fail(messages.Failure(status=7, message="ü%"))
        raise AssertionError("a failure was asked for")
    except grpc.RpcError as error:
        assert (error.code(), error.details()) == (grpc.StatusCode.PERMISSION_DENIED, "ü%")
    try:
        list(echo.Repeat(Text(times=2, gap_ms=60_000), timeout=0.2))
        raise AssertionError("it takes longer than that")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
print("all came back")
