"""The gRPC service of crawler-commons URLFrontier, on top of Trapline's frontier: `trapline serve urlfrontier`. Imports grpcio."""
