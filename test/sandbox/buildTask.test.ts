import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { runTask, TaskFailed } from '../../src/sandbox/buildTask.ts'
import { type ChildCode, prepareChildCode } from '../../src/sandbox/childCode.ts'
import { DEFAULT_OPTIONS } from '../../src/sandbox/limits.ts'
import type { TaskChild, TaskListener } from '../../src/sandbox/taskChild.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const MIB = 1 << 20
const ending = { code: 'worker_lost', message: 'The process was killed', output: '' } as const

/** A child that had started before, and lives as `live` says. */
const childThat = (
  live: (listener: TaskListener) => void,
  onListen: (yes: boolean, listener: TaskListener) => void = () => {},
): TaskChild => {
  let listening: TaskListener | undefined
  const child: Pick<TaskChild, 'begin' | 'kill' | 'listen'> = {
    begin: (_, listener) => live((listening = listener)),
    listen: (yes) => listening && onListen(yes, listening),
    kill: () => void setImmediate(() => listening?.onEnd(ending)),
  }
  return child as TaskChild
}

/** The error of a task whose child ends as `live` says. */
const errorOf = (live: (listener: TaskListener) => void): Promise<unknown> =>
  runTask({
    task: 'inspect',
    dir: '/',
    files: ['a.js'],
    maxSize: 1000,
    code: {} as ChildCode,
    options: DEFAULT_OPTIONS,
    onResult: () => {},
    child: childThat(live),
  }).catch((error: unknown) => error)

const task = suite('the task of a child that waited')

task('is not blamed on the build when the child ended before the task began', async () => {
  const error = await errorOf(({ onEnd }) => setImmediate(onEnd, ending))
  assert.ok(isAppError(error, 'unavailable'), String(error))
})

task('is blamed on the build when the child ended in the task', async () => {
  const error = await errorOf(({ onBegin, onEnd }) => {
    onBegin()
    setImmediate(onEnd, ending)
  })
  assert.instance(error, TaskFailed)
})

const results = suite('results of a task that take longer than their child', { timeoutMs: 60_000 })

const FILES = 24
/** Turns of the event loop in which a result is in progress: the next ones could arrive meanwhile. */
const TURNS = 5000

results('wait in the child, except for the first few', async () => {
  const dir = join(tempDir(), 'files')
  mkdirSync(dir)
  const source = `/*${'a'.repeat(MIB)}*/`
  const files = Array.from({ length: FILES }, (_, n) => `f${n}.ts`)
  for (const file of files) writeFileSync(join(dir, file), source)
  let [inProgress, most, count] = [0, 0, 0]
  let before: Promise<void> = Promise.resolve()
  const slowly = async (last: Promise<void>): Promise<void> => {
    most = Math.max(most, ++inProgress)
    await last
    for (let n = 0; n < TURNS; n++) await turn()
    inProgress--
    count++
  }
  const code = prepareChildCode(tempDir())
  const options = { ...DEFAULT_OPTIONS, startMs: 60_000, inspectMs: 60_000 }
  const onResult = () => (before = slowly(before))
  await runTask({ task: 'strip', dir, files, maxSize: Infinity, code, options, onResult })
  await before
  assert.is(count, FILES)
  assert.ok(most <= 9, `Expected at most 9 MiB in progress, got ${most}`)
})

results('do not use the time of the build meanwhile', async () => {
  const result = Promise.withResolvers<void>()
  const heard: boolean[] = []
  const inspectMs = 20
  await runTask({
    task: 'strip',
    dir: '/',
    files: ['a.ts'],
    maxSize: Infinity,
    code: {} as ChildCode,
    options: { ...DEFAULT_OPTIONS, inspectMs },
    onResult: () => result.promise,
    child: childThat(
      (listener) => {
        listener.onBegin()
        listener.onFrame({ type: 'stripped', file: 'a.ts', code: '' }, 9 * MIB)
        void delay(3 * inspectMs).then(result.resolve) // its timer ends after one that began before it
      },
      (yes, listener) => {
        heard.push(yes)
        if (yes) listener.onFrame({ type: 'done' }, 0)
      },
    ),
  })
  assert.equal(heard, [false, true])
})

task.run()
results.run()
