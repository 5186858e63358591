import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { runTask, TaskFailed } from '../../src/sandbox/buildTask.ts'
import type { ChildCode } from '../../src/sandbox/childCode.ts'
import { DEFAULT_OPTIONS } from '../../src/sandbox/limits.ts'
import type { TaskChild, TaskListener } from '../../src/sandbox/taskChild.ts'
import { suite } from '../support/suite.ts'

/** The error of a task whose child, which had started before, ends as `live` says. */
const errorOf = (live: (listener: TaskListener) => void): Promise<unknown> => {
  const child: Pick<TaskChild, 'begin' | 'kill'> = { begin: (_, listener) => live(listener), kill: () => {} }
  return runTask({
    task: 'inspect',
    dir: '/',
    files: ['a.js'],
    maxSize: 1000,
    code: {} as ChildCode,
    options: DEFAULT_OPTIONS,
    onResult: () => {},
    child: child as TaskChild,
  }).catch((error: unknown) => error)
}
const ending = { code: 'worker_lost', message: 'The process was killed', output: '' } as const

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

task.run()
