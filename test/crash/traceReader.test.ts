import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import type { Operation } from './operations.ts'
import { TraceReader } from './traceReader.ts'

/** A text as `strace -xx` prints it. */
const hex = (text: string): string =>
  `"${[...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`

const stepsOf = (...lines: readonly string[]) => {
  const file = join(tempDir(), 'trace')
  writeFileSync(file, lines.join('\n'))
  return new TraceReader(['/d']).read(file)
}

const operationsOf = async (...lines: readonly string[]): Promise<Operation[]> =>
  (await stepsOf(...lines)).flatMap((step) => (step.type === 'begin' ? [step.operation] : []))

const trace = suite('the reader of a trace')

trace('follows files from their opening to their writes, with positions of their own', async () => {
  const operations = await operationsOf(
    `7 openat(AT_FDCWD, ${hex('/d/a')}, O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 21`,
    `7 write(21, ${hex('one')}, 3) = 3`,
    `7 writev(21, [{iov_base=${hex('tw')}, iov_len=2}, {iov_base=${hex('o')}, iov_len=1}], 2) = 3`,
    `7 pwrite64(21, ${hex('x')}, 1, 100) = 1`,
    `7 fdatasync(21) = 0`,
    `7 close(21) = 0`,
    `7 write(21, ${hex('not a file')}, 10) = 10`,
  )
  assert.equal(operations, [
    { kind: 'open', handle: 1, path: '/d/a', truncates: false },
    { kind: 'write', handle: 1, at: 0, bytes: Buffer.from('one') },
    { kind: 'write', handle: 1, at: 3, bytes: Buffer.from('two') },
    { kind: 'write', handle: 1, at: 100, bytes: Buffer.from('x') },
    { kind: 'sync', handle: 1 },
  ])
})

trace('leaves out other files, failed calls and other processes, but not other threads', async () => {
  const operations = await operationsOf(
    `7 mkdir(${hex('/elsewhere')}, 0700) = 0`,
    `7 mkdir(${hex('/d/a')}, 0700) = -1 EEXIST (File exists)`,
    `9 mkdir(${hex('/d/of-a-thread')}, 0700) = 0`,
    `7 clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0} => {parent_tid=[9]}, 88) = 9`,
    `7 vfork() = 8`,
    `8 mkdir(${hex('/d/of-another-process')}, 0700) = 0`,
    `8 close(3) = 0`,
    `7 +++ exited with 0 +++`,
  )
  assert.equal(operations, [{ kind: 'mkdir', path: '/d/of-a-thread' }])
})

trace('keeps the beginning and the end of a call during which another thread made one', async () => {
  const steps = await stepsOf(
    `7 openat(AT_FDCWD, ${hex('/d/a')}, O_RDWR|O_CREAT, 0600) = 21`,
    `7 clone3({flags=CLONE_THREAD}, 88) = 9`,
    `9 fsync(21 <unfinished ...>`,
    `7 rename(${hex('/d/a')}, ${hex('/d/b')}) = 0`,
    `9 <... fsync resumed>) = 0`,
    `7 unlink(${hex('/d/b')} <unfinished ...>`,
  )
  assert.equal(
    steps.map((step) => (step.type === 'begin' ? `begin ${step.operation.kind}` : `end ${step.id}`)),
    ['begin open', 'end 1', 'begin sync', 'begin rename', 'end 3', 'end 2', 'begin remove'],
  )
})

trace('keeps the beginning of a call from which strace was detached', async () => {
  const steps = await stepsOf(
    `7 openat(AT_FDCWD, ${hex('/d/a')}, O_RDWR|O_CREAT, 0600) = 21`,
    `7 pwrite64(21, ${hex('x')}, 1, 100 <detached ...>`,
  )
  assert.equal(steps.slice(2), [
    { type: 'begin', id: 2, operation: { kind: 'write', handle: 1, at: 100, bytes: Buffer.from('x') } },
  ])
})

trace(
  'gives a number to a file when its opening returns: another thread may close the former file until then',
  async () => {
    const operations = await operationsOf(
      `7 clone3({flags=CLONE_THREAD}, 88) = 9`,
      `9 openat(AT_FDCWD, ${hex('/d/a')}, O_WRONLY|O_CREAT, 0600 <unfinished ...>`,
      `7 close(21) = 0`,
      `9 <... openat resumed>) = 21`,
      `9 write(21, ${hex('x')}, 1) = 1`,
    )
    assert.equal(
      operations.map(({ kind }) => kind),
      ['open', 'write'],
    )
  },
)

trace('finds the ids of requests in what a process sends', async () => {
  const reply = 'HTTP/1.1 200 OK\r\nX-Request-Id: abc-1\r\n\r\n'
  assert.equal(await operationsOf(`7 write(30, ${hex(reply)}, 40) = 40`), [
    { kind: 'reply', request_ids: ['abc-1'] },
  ])
})

for (const [what, line] of [
  ['a call that changes a file in a way that it does not know', `7 truncate(${hex('/d/a')}, 5) = 0`],
  ['a text that strace has cut', `7 write(21, ${hex('abc')}..., 3) = 3`],
  ['an io_uring, whose writes strace does not see', `7 io_uring_setup(64, {flags=IORING_SETUP_SQPOLL}) = 5`],
] as const)
  trace(`refuses ${what}`, async () => {
    const refused = await operationsOf(line).then(
      () => null,
      (error: unknown) => error,
    )
    assert.instance(refused, Error)
  })

trace.run()
