import { GenericContainer, type StartedTestContainer, Wait } from 'testcontainers'
import { makeBucket } from './makeBucket.ts'

/** The SVC_TEST_ variables of the engines, by name. */
export type EngineVariables = Readonly<Record<string, string>>

/** A started engine and the variable that names it. Its data ends with its container. */
interface Started {
  readonly container: StartedTestContainer
  readonly variables: EngineVariables
}

const at = (container: StartedTestContainer, port: number): string =>
  `${container.getHost()}:${container.getMappedPort(port)}`

/** 24.6.0 is the last version under an open source license; for ARM it was only published as a preview. */
const eventStoreImage = `eventstore/eventstore:24.6.0-${process.arch === 'arm64' ? 'alpha-arm64v8' : 'jammy'}`

const startEventStore = async (): Promise<Started> => {
  const container = await new GenericContainer(eventStoreImage)
    .withEnvironment({
      EVENTSTORE_INSECURE: 'true',
      EVENTSTORE_MEM_DB: 'true',
      EVENTSTORE_TELEMETRY_OPTOUT: 'true',
    })
    .withExposedPorts(2113)
    .withWaitStrategy(Wait.forHttp('/health/live', 2113).forStatusCodeMatching((status) => status < 300))
    .start()
  return { container, variables: { SVC_TEST_EVENT_STORE: `esdb://${at(container, 2113)}?tls=false` } }
}

const startMongodb = async (): Promise<Started> => {
  const container = await new GenericContainer('mongo:7')
    .withExposedPorts(27017)
    .withWaitStrategy(Wait.forLogMessage(/Waiting for connections/))
    .start()
  return { container, variables: { SVC_TEST_MONGODB: `mongodb://${at(container, 27017)}/svc_test` } }
}

const startRedis = async (): Promise<Started> => {
  const container = await new GenericContainer('redis:7')
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no'])
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage(/Ready to accept connections/))
    .start()
  return { container, variables: { SVC_TEST_REDIS: `redis://${at(container, 6379)}/0` } }
}

const startS3 = async (): Promise<Started> => {
  const [key, secret] = ['svc-test', 'svc-test-secret']
  const container = await new GenericContainer('minio/minio:RELEASE.2025-09-07T16-13-09Z')
    .withEnvironment({ MINIO_ROOT_USER: key, MINIO_ROOT_PASSWORD: secret })
    .withCommand(['server', '/data'])
    .withExposedPorts(9000)
    .withWaitStrategy(Wait.forHttp('/minio/health/ready', 9000))
    .start()
  const url = `s3://${key}:${secret}@${at(container, 9000)}/svc-test?region=us-east-1&tls=false`
  await makeBucket(url)
  return { container, variables: { SVC_TEST_S3: url } }
}

/** Starts every engine in its own container. If one fails to start, the others are stopped. */
export const startEngines = async (): Promise<{ variables: EngineVariables; stop(): Promise<void> }> => {
  const begun = await Promise.allSettled([startEventStore(), startMongodb(), startRedis(), startS3()])
  const started = begun.filter((result) => result.status === 'fulfilled').map(({ value }) => value)
  const stop = async () => void (await Promise.all(started.map(({ container }) => container.stop())))
  const failed = begun.find((result) => result.status === 'rejected')
  if (failed) {
    await stop()
    throw failed.reason
  }
  return { variables: Object.assign({}, ...started.map(({ variables }) => variables)), stop }
}
