import * as assert from 'uvu/assert'
import type { AppError } from '../../src/errors.ts'
import { Intake, MAX_UNREAD } from '../../src/sandbox/intake.ts'
import { suite } from '../support/suite.ts'

const openPipe = () => ({
  unread: 0,
  listening: true,
  listen(yes: boolean) {
    this.listening = yes
  },
})

const open: Intake[] = []
const opened = (pipe: ReturnType<typeof openPipe>): Intake => {
  const intake = new Intake(pipe)
  open.push(intake)
  return intake
}

/** Takes host calls and counts those whose turn it is. */
const taking = (intake: Intake, calls: number, allowed: Promise<void> | null = null) => {
  const begun: (() => void)[] = []
  const begin = async ({ turn, done: end }: ReturnType<Intake['take']>) => {
    if (turn) await turn
    begun.push(end)
  }
  for (let n = 0; n < calls; n++) void begin(intake.take(100, allowed))
  return begun
}
const turns = () => new Promise((resolve) => setImmediate(resolve))

const intake = suite('the intake of a child')
intake.after.each(() => {
  for (const one of open.splice(0)) one.end()
})

intake('serves 100 host calls at a time and reads no further until each has begun (N1)', async () => {
  const pipe = openPipe()
  const of = opened(pipe)
  const begun = taking(of, 150)
  await turns()
  assert.equal([begun.length, pipe.listening], [100, false])
  for (const end of begun.splice(0, 50)) end()
  await turns()
  assert.equal([begun.length, pipe.listening], [100, true])
})

intake('begins child runs at once, because they may need the same child (N4)', () => {
  const of = opened(openPipe())
  taking(of, 100)
  assert.is(of.takeAwaiting(100).turn, null)
})

intake('reads on while child runs are awaited, however large their requests were (N4)', () => {
  const pipe = openPipe()
  const of = opened(pipe)
  const calls = Array.from({ length: 5 }, () => of.takeAwaiting(8 << 20))
  assert.is(pipe.listening, false, 'until the requests are stored')
  for (const { release } of calls) release()
  assert.is(pipe.listening, true)
  for (const { done } of calls) done()
  const others = Array.from({ length: 4 }, () => of.take(10 << 20, null))
  assert.is(pipe.listening, false, 'the bytes of a call are subtracted once')
  for (const { done } of others) done()
})

intake('bounds the child runs that are awaited, in equal shares (N4)', () => {
  const all = Array.from({ length: 10 }, () => opened(openPipe()))
  const of = all[0] as Intake
  const calls = Array.from({ length: 10_000 }, () => {
    const call = of.takeAwaiting(0)
    call.release()
    return call
  })
  assert.throws(
    () => of.takeAwaiting(0),
    ({ code, message }: AppError) => code === 'quota_exceeded' && message.includes('10000 child runs'),
  )
  assert.not.throws(() => all[1]?.takeAwaiting(0))
  calls[0]?.done()
  assert.not.throws(() => of.takeAwaiting(0))
})

intake('gives no place to a call that its plan does not allow yet, and reads on', async () => {
  const pipe = openPipe()
  const of = opened(pipe)
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>()
  const late = taking(of, 150, allowed)
  const begun = taking(of, 90)
  await turns()
  assert.equal([late.length, begun.length, pipe.listening], [0, 90, true])
  allow()
  await turns()
  assert.equal([late.length, pipe.listening], [10, false])
})

intake('begins no host call while replies wait unread, and continues when they were read', async () => {
  const pipe = openPipe()
  const of = opened(pipe)
  pipe.unread = MAX_UNREAD + 1
  const begun = taking(of, 2)
  await turns()
  assert.equal([begun.length, pipe.listening], [0, false])
  of.tick(100)
  assert.is(of.unreadMs, 100)
  pipe.unread = 0
  of.tick(100)
  await turns()
  assert.equal([begun.length, pipe.listening, of.unreadMs], [2, true, 0])
})

intake('stops reading from a child that floods, until its budget has grown again (N2)', () => {
  const pipe = openPipe()
  const of = opened(pipe)
  for (let n = 0; n < 30_000; n++) of.charge(10)
  assert.is(pipe.listening, false)
  of.tick(1000)
  assert.is(pipe.listening, false)
  of.tick(2000)
  assert.is(pipe.listening, true)
})

intake('stops reading from a child that sends too many bytes', () => {
  const pipe = openPipe()
  const of = opened(pipe)
  for (let n = 0; n < 20; n++) of.charge(8 << 20)
  assert.is(pipe.listening, false)
})

intake('serves what a child asked before its end', async () => {
  const pipe = openPipe()
  const of = opened(pipe)
  pipe.unread = MAX_UNREAD + 1
  const begun = taking(of, 3)
  of.end()
  await turns()
  assert.is(begun.length, 3)
})

intake(
  'of one child stops while all children together hold too much, and only if it holds more than a small share (N3)',
  () => {
    const pipes = Array.from({ length: 5 }, openPipe)
    const all = pipes.map((pipe) => opened(pipe))
    const results = all.slice(0, 4).map((one) => one.hold(30 << 20))
    const last = all[4] as Intake
    assert.equal(
      pipes.map(({ listening }) => listening),
      [true, true, true, false, true],
      'the fourth went over the limit of all',
    )
    const small = last.hold(256 << 10)
    assert.is(pipes[4]?.listening, true)
    const done = last.hold(100)
    assert.is(pipes[4]?.listening, false)
    small()
    for (const stored of results) stored()
    last.tick(50)
    done()
    assert.equal(
      pipes.map(({ listening }) => listening),
      [true, true, true, true, true],
    )
  },
)

intake(
  'begins no host call of a child with unread replies while all children have too many (N3)',
  async () => {
    const pipes = Array.from({ length: 6 }, openPipe)
    const all = pipes.map((pipe) => opened(pipe))
    for (const pipe of pipes) pipe.unread = 15 << 20
    const begun = taking(all[0] as Intake, 1)
    await turns()
    assert.is(begun.length, 0)
    for (const pipe of pipes.slice(1)) pipe.unread = 0
    all[0]?.tick(50)
    await turns()
    assert.is(begun.length, 1)
  },
)

intake.run()
