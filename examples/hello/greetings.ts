import { call, emit, fn, send } from 'svc'

interface Greeting {
  readonly name: string
}

/** Runs for each `hello:said` event. Clients of the stream see each emitted word while the function runs. */
export const onHello = fn(
  { 'on-event': 'hello:said', retry: { attempts: 3, delay: 1000 } },
  async (event) => {
    const { name }: Greeting = event.data
    for (const word of ['Hello', name, 'and welcome']) await emit('word', word)
    await send('hello:answered', { name })
    return { greeting: `Hello, ${name}!` }
  },
)

/** Fails twice, then succeeds. GET /v1/runs reports its failed runs as `pending_retry` until the retry. */
const tries = new Map<string, number>()
export const onFlaky = fn(
  { 'on-event': 'hello:flaky', retry: { attempts: 3, delay: 500 } },
  async (event) => {
    const origin = event.id
    const tried = (tries.get(origin) ?? 0) + 1
    tries.set(origin, tried)
    if (tried < 3) throw new Error(`Attempt ${tried} fails on purpose`)
    return { tried }
  },
)

/** A webhook: the return value is the reply to a POST to its URL. */
export const hook = fn({ webhook: { service: 'hello', path: '/greet' } }, async (request) => {
  const { name = 'stranger' }: Partial<Greeting> = request.body ?? {}
  await call('greetings/add', 1, 2)
  return { status: 200, body: { greeting: `Hello, ${name}!` } }
})

/** Runs every five minutes. */
export const tick = fn({ schedule: '*/5 * * * *' }, async (event) => event.data)

/** A plain export can be called by reference: publish `svc:call` with {"fn": "greetings/add", "args": [1, 2]}. */
export const add = (a: number, b: number) => a + b
