import { until } from '../support/until.ts'
import { publish } from '../support/build.ts'
import type { Api } from '../support/http.ts'

/** One server-sent event, its data parsed. */
export interface Sent {
  readonly id: string
  readonly event: string
  readonly data: Record<string, unknown>
}

/** An open text/event-stream reply. */
export interface Follower {
  readonly status: number
  /** Events so far. */
  readonly seen: readonly Sent[]
  /** Whether the reply has ended, by either side. */
  readonly over: boolean
  /** The next event that was not taken yet. */
  next(): Promise<Sent>
  /** All up to and including the first of this name. */
  upTo(event: string): Promise<Sent[]>
  /** All until the service ends the reply. */
  rest(): Promise<Sent[]>
  close(): void
}

export interface Follow {
  readonly method?: string
  readonly body?: unknown
  readonly lastId?: string
}

/** Follows a stream by its path below `/v1`. Rejects unless it begins as text/event-stream. */
export const follow = async (
  api: Api,
  path: string,
  { method = 'GET', body, lastId }: Follow = {},
): Promise<Follower> => {
  const cut = new AbortController()
  const response = await fetch(`${api.url}/v1${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${api.key}`,
      Accept: 'text/event-stream',
      ...(lastId !== undefined && { 'Last-Event-ID': lastId }),
    },
    signal: cut.signal,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const type = response.headers.get('content-type') ?? ''
  if (!type.startsWith('text/event-stream'))
    throw new Error(`Expected a stream, got ${response.status} ${await response.text()}`)
  const seen: Sent[] = []
  let taken = 0
  let over = false
  const reading = read(response, (event) => void seen.push(event)).then(() => void (over = true))
  const next = async (): Promise<Sent> => {
    await until(() => seen.length > taken || over)
    const event = seen[taken]
    if (!event)
      throw new Error(`Expected another event after ${JSON.stringify(seen.at(-1))}, the stream is over`)
    taken++
    return event
  }
  return {
    status: response.status,
    seen,
    get over() {
      return over
    },
    next,
    upTo: async (name) => {
      for (const events: Sent[] = []; ;) {
        const event = await next()
        events.push(event)
        if (event.event === name) return events
      }
    },
    rest: async () => {
      await reading
      const events = seen.slice(taken)
      taken = seen.length
      return events
    },
    close: () => cut.abort(),
  }
}

export const publishAndFollow = (
  api: Api,
  event_type: string,
  event_data: unknown = null,
  more: object = {},
) =>
  follow(api, '/streams/subscribe-with-event', { method: 'POST', body: { event_type, event_data, ...more } })

/** Events of the environment up to and including a mark that is published now. */
export const upToMark = async (api: Api, follower: Follower): Promise<Sent[]> => {
  const { event_id } = await publish(api, 'mark')
  for (const events: Sent[] = []; ;) {
    const event = await follower.next()
    events.push(event)
    if (event.data['event_id'] === event_id) return events
  }
}

/** Reads blocks of lines; a reply that is cut off ends like one that is over. */
const read = async (response: Response, onEvent: (event: Sent) => void): Promise<void> => {
  let text = ''
  try {
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = eventIn(block)
        if (event) onEvent(event)
      }
    }
  } catch {
    // cut off
  }
}

const eventIn = (block: string): Sent | undefined => {
  const fields = new Map(
    block.split('\n').flatMap((line) => {
      const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? []
      return name === undefined ? [] : [[name, value ?? ''] as const]
    }),
  )
  const data = fields.get('data')
  if (data === undefined) return undefined
  return {
    id: fields.get('id') ?? '',
    event: fields.get('event') ?? 'message',
    data: JSON.parse(data) as Sent['data'],
  }
}
