import type { handleUnaryCall, ServiceDefinition } from '@grpc/grpc-js'
import groupsGrpc from '@eventstore/db-client/generated/persistent_grpc_pb.js'
import serverFeatures from '@eventstore/db-client/generated/serverfeatures_pb.js'
import type shared from '@eventstore/db-client/generated/shared_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import { failsNow, type Node } from './node.ts'

const VERSION = '24.6.0'
const OLD_VERSION = '20.10.5'

/** Lists the supported calls. The client requests the list before its first append. */
export const features =
  (node: Node): handleUnaryCall<shared.Empty, serverFeatures.SupportedMethods> =>
  (_, reply) => {
    const { misbehaviour } = node
    const answer = () => reply(null, supported(misbehaviour.isOld))
    if (failsNow(node, 'features', { refuse: reply })) return
    const silence = misbehaviour.silenceOf('features')
    if (silence) void silence.then(answer)
    else answer()
  }

const supported = (old: boolean): serverFeatures.SupportedMethods => {
  const methods = new serverFeatures.SupportedMethods()
  methods.setEventStoreServerVersion(old ? OLD_VERSION : VERSION)
  if (old) return methods
  add(methods, streamsGrpc.StreamsService, [])
  add(methods, groupsGrpc.PersistentSubscriptionsService, ['stream', 'all'])
  return methods
}

const add = (
  methods: serverFeatures.SupportedMethods,
  service: ServiceDefinition,
  features: string[],
): void => {
  for (const { path } of Object.values(service)) {
    const [, serviceName = '', methodName = ''] = path.toLowerCase().split('/')
    const method = new serverFeatures.SupportedMethod()
    method.setServiceName(serviceName)
    method.setMethodName(methodName)
    method.setFeaturesList(features)
    methods.addMethods(method)
  }
}
