// A cart over grpc-go that answers with what it was given, its types known by the descriptor set that the first argument names; with
// health checking, and reflection, v1 or v1alpha as the second argument says. Prints its port, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// Files of the descriptor set, and Google's own, which are linked in.
type files struct{ own *protoregistry.Files }

func (f files) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if file, err := f.own.FindFileByPath(path); err == nil {
		return file, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (f files) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if descriptor, err := f.own.FindDescriptorByName(name); err == nil {
		return descriptor, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

func main() {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(must(os.ReadFile(os.Args[1])), &set); err != nil {
		log.Fatal(err)
	}
	own := must(protodesc.NewFiles(&set))
	item := must(own.FindDescriptorByName("shop.Item")).(protoreflect.MessageDescriptor)
	field := func(name protoreflect.Name) protoreflect.FieldDescriptor { return item.Fields().ByName(name) }

	stream := func(name string, client, server bool, answer func(grpc.ServerStream, func() (*dynamicpb.Message, error)) error) grpc.StreamDesc {
		return grpc.StreamDesc{
			StreamName: name, ClientStreams: client, ServerStreams: server,
			Handler: func(_ any, stream grpc.ServerStream) error {
				return answer(stream, func() (*dynamicpb.Message, error) {
					message := dynamicpb.NewMessage(item)
					return message, stream.RecvMsg(message)
				})
			},
		}
	}
	add := stream("Add", false, false, func(stream grpc.ServerStream, next func() (*dynamicpb.Message, error)) error {
		message, err := next()
		if err != nil {
			return err
		}
		return stream.SendMsg(message)
	})
	watch := stream("Watch", false, true, func(stream grpc.ServerStream, next func() (*dynamicpb.Message, error)) error {
		message, err := next()
		if err != nil {
			return err
		}
		for number := int64(0); number < message.Get(field("count")).Int(); number++ {
			message.Set(field("big"), protoreflect.ValueOfInt64(number))
			if err := stream.SendMsg(message); err != nil {
				return err
			}
		}
		return nil
	})
	fill := stream("Fill", true, false, func(stream grpc.ServerStream, next func() (*dynamicpb.Message, error)) error {
		all, count := "", int32(0)
		for {
			message, err := next()
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			all, count = all+message.Get(field("sku")).String(), count+1
		}
		answer := dynamicpb.NewMessage(item)
		answer.Set(field("sku"), protoreflect.ValueOfString(all))
		answer.Set(field("count"), protoreflect.ValueOfInt32(count))
		return stream.SendMsg(answer)
	})
	chat := stream("Chat", true, true, func(stream grpc.ServerStream, next func() (*dynamicpb.Message, error)) error {
		for {
			message, err := next()
			if err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if err := stream.SendMsg(message); err != nil {
				return err
			}
		}
	})

	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "shop.Cart", HandlerType: (*any)(nil), Metadata: "shop.proto",
		Streams: []grpc.StreamDesc{add, watch, fill, chat},
	}, struct{}{})
	healths := health.NewServer()
	healthpb.RegisterHealthServer(server, healths)
	options := reflection.ServerOptions{Services: server, DescriptorResolver: files{own}}
	if os.Args[2] == "v1" {
		reflectionpb.RegisterServerReflectionServer(server, reflection.NewServerV1(options))
	} else {
		reflectionalphapb.RegisterServerReflectionServer(server, reflection.NewServer(options))
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(server.Serve(listener))
}
