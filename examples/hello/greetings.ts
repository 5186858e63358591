import { call, emit, fn, send } from 'svc'

interface Greeting {
  readonly name: string
}

/** Runs for every `hello:said` event; what it emits shows in the stream while it runs. */
export const onHello = fn(
  { 'on-event': 'hello:said', retry: { attempts: 3, delay: 1000 } },
  async (event) => {
    const { name }: Greeting = event.data
    for (const word of ['Hello', name, 'and welcome']) await emit('word', word)
    await send('hello:answered', { name })
    return { greeting: `Hello, ${name}!` }
  },
)

/** Fails twice, then succeeds: see `pending_retry` in GET /v1/runs. */
const tries = new Map<string, number>()
export const onFlaky = fn(
  { 'on-event': 'hello:flaky', retry: { attempts: 3, delay: 500 } },
  async (event) => {
    const origin = event.id
    const tried = (tries.get(origin) ?? 0) + 1
    tries.set(origin, tried)
    if (tried < 3) throw new Error(`try ${tried} fails on purpose`)
    return { tried }
  },
)

/** POST to its URL: the reply is what this returns. */
export const hook = fn({ webhook: { service: 'hello', path: '/greet' } }, async (request) => {
  const { name = 'stranger' }: Partial<Greeting> = request.body ?? {}
  await call('greetings/add', 1, 2)
  return { status: 200, body: { greeting: `Hello, ${name}!` } }
})

/** Every five minutes. */
export const tick = fn({ schedule: '*/5 * * * *' }, async (event) => event.data)

/** Plain exports are called by reference: publish `svc:call` with {"fn": "greetings/add", "args": [1, 2]}. */
export const add = (a: number, b: number) => a + b
