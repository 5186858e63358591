import { randomUUID } from 'node:crypto'
import { bytesOf, type Proposed } from './stored.ts'

/** The uptime of the server before a test: it writes statistics once a minute. */
const MINUTES_UP = 30

/** An event that a server writes itself. */
export const systemEvent = (type: string, data: string): Proposed => ({
  id: randomUUID(),
  type,
  contentType: type === '$>' ? 'application/octet-stream' : 'application/json',
  data: bytesOf(data),
  metadata: bytesOf(''),
})

/** The metadata of a stream, an event of its metadata stream. */
export const metadata = (fields: string): Proposed => systemEvent('$metadata', fields)

/** The system events that every log contains from the start. */
export const firstEvents = (): readonly (readonly [stream: string, event: Proposed])[] => [
  ['$$$stats-127.0.0.1:2113', metadata('{"$maxAge":86400}')],
  ['$users', systemEvent('$User', '"admin"')],
  ['$user-admin', systemEvent('$UserCreated', '{"loginName":"admin"}')],
  ...Array.from(
    { length: MINUTES_UP },
    () => ['$stats-127.0.0.1:2113', systemEvent('$statsCollected', '{}')] as const,
  ),
]
