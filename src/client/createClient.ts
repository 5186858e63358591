import type { Event, Page, Run } from './api.ts'
import { callOf, runEnded, valueOf } from './calls.ts'
import type {
  CallOptions,
  Client,
  ClientOptions,
  Contract,
  FollowEnvOptions,
  FollowOptions,
  PublishOptions,
  Registered,
  RequestOptions,
  ResultOptions,
} from './client.ts'
import { openFiles } from './files.ts'
import { followEvents } from './follow.ts'
import { openLists } from './lists.ts'
import { randomKey } from './randomKey.ts'
import type { EnvEvent, EventPublished, StreamEvent } from './streamEvents.ts'
import { type AnyInput, dataOf, openTransport } from './transport.ts'

const FOLLOW = 'GET /v1/streams/{stream_id}/subscribe'

/** Opens the API of one environment. No request is sent before the first call. */
export const createClient = <C extends Contract = Registered>(options: ClientOptions): Client<C> => {
  const send = openTransport(options)
  const ask = async (operation: string, input?: AnyInput): Promise<unknown> =>
    dataOf(await send(operation, input))

  const publish = async (event_type: string, event_data: unknown, given: PublishOptions = {}) =>
    (await ask('POST /v1/events', publication(event_type, event_data, given))) as Event

  const callWith = (fn: string, args: readonly unknown[], { project, ...given }: CallOptions = {}) =>
    callOf<unknown>(send, publish('svc:call', { fn, args, ...(project !== undefined && { project }) }, given))

  const runs = openLists(send, 'GET /v1/runs', ({ run_id }) => run_id)
  const events = openLists(send, 'GET /v1/events', ({ event_id }) => event_id)
  const files = openLists(send, 'GET /v1/files', ({ file_id }) => file_id, 'after')

  const client = {
    url: options.url.replace(/\/+$/, ''),
    send: publish,
    call: (ref: string, ...args: readonly unknown[]) => callWith(ref, args),
    callWith,

    async *follow(stream_id: string, { from = 'start', project, times, signal, onOpen }: FollowOptions = {}) {
      const input = {
        path: { stream_id },
        query: { ...(project !== undefined && { project }), ...timesOf(times) },
        ...withSignal(signal),
      }
      for await (const event of followEvents({ send, operation: FOLLOW, input, from, onOpen }))
        yield event as StreamEvent
    },

    async *sendAndFollow(
      event_type: string,
      event_data?: unknown,
      { times, ...given }: PublishOptions & Pick<FollowOptions, 'times'> = {},
    ) {
      const query = timesOf(times)
      const followed = {
        send,
        operation: 'POST /v1/streams/subscribe-with-event',
        input: { ...publication(event_type, event_data, given), query },
        from: undefined,
        resume: ({ data }: { readonly data: unknown }) => ({
          operation: FOLLOW,
          input: {
            path: { stream_id: (data as EventPublished['data']).stream_id },
            query,
            ...withSignal(given.signal),
          },
        }),
      }
      for await (const event of followEvents(followed)) yield event as EventPublished | StreamEvent
    },

    async *followEnv({ from, consumer, signal, onOpen }: FollowEnvOptions = {}) {
      const operation = 'GET /v1/env/subscribe'
      const input = { ...(consumer !== undefined && { query: { consumer } }), ...withSignal(signal) }
      for await (const event of followEvents({ send, operation, input, from, onOpen }))
        yield event as EnvEvent
    },

    runs: {
      ...runs,
      get: (run_id: string, given?: RequestOptions) =>
        ask('GET /v1/runs/{run_id}', { path: { run_id }, ...given }) as Promise<Run>,
      logs: (run_id: string, given?: RequestOptions) =>
        ask('GET /v1/runs/{run_id}/logs', { path: { run_id }, ...given }),
      stats: (given?: RequestOptions) => ask('GET /v1/runs/stats', given),
      ended: (run_id: string, given?: ResultOptions) => runEnded(send, run_id, given),
      result: async (run_id: string, given?: ResultOptions) => valueOf(await runEnded(send, run_id, given)),
      cancel: (run_id: string, given?: PublishOptions) => publish('svc:cancel', { run_id }, given),
      replay: (run_id: string, given?: PublishOptions) =>
        callOf<unknown>(send, publish('svc:replay', { run_id }, given)),
    },

    events: {
      ...events,
      get: (event_id: string, given?: RequestOptions) =>
        ask('GET /v1/events/{event_id}', { path: { event_id }, ...given }) as Promise<Event>,
      runs: (event_id: string, { signal, ...query }: RequestOptions = {}) =>
        ask('GET /v1/events/{event_id}/runs', {
          path: { event_id },
          query: { ...query },
          ...withSignal(signal),
        }) as Promise<Page<Run>>,
    },

    files: openFiles(send, files),
    request: ask,
    open: send,
  }
  // The names and types of a contract exist only at compile time.
  return client as unknown as Client<C>
}

const withSignal = (signal: AbortSignal | undefined): { readonly signal?: AbortSignal } =>
  signal === undefined ? {} : { signal }

const timesOf = (times: boolean | undefined): { readonly times?: 'true' } => (times ? { times: 'true' } : {})

const publication = (
  event_type: string,
  event_data: unknown = null,
  { stream_id, idempotencyKey = randomKey(), signal }: PublishOptions,
): AnyInput => ({
  body: { event_type, event_data, ...(stream_id !== undefined && { stream_id }) },
  idempotencyKey,
  ...withSignal(signal),
})
