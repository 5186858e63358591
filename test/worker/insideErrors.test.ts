import * as assert from 'uvu/assert'
import { AppError } from '../../src/errors.ts'
import { streamOf } from '../../src/events/streams.ts'
import { type Logger, silent } from '../../src/logger.ts'
import { withoutInside } from '../../src/worker/insideErrors.ts'
import { openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { deployBuild, openWorker, wantedCall } from './openWorker.ts'

const PATH = '/srv/svc/data/blobs/ab'
const failure = () => Object.assign(new Error(`EIO: i/o error, read '${PATH}'`), { code: 'EIO' })

/** A logger that keeps the lines of errors. */
const keeping = (): Logger & { readonly lines: string[] } => {
  const lines: string[] = []
  return {
    ...silent,
    lines,
    error: (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`),
  }
}

const inside = suite('an error from the inside of the service')

inside('reaches the log, but not user code', () => {
  const logger = keeping()
  const { signal } = new AbortController()
  const shown = withoutInside(failure(), { run_id: 'r-1', signal, logger })
  assert.is(shown.code, 'internal_server_error')
  assert.not.match(shown.message, PATH)
  assert.is(logger.lines.length, 1)
  assert.match(logger.lines[0] ?? '', PATH)
  assert.match(logger.lines[0] ?? '', 'r-1')
})

inside('is not logged for a run that was stopped', () => {
  const logger = keeping()
  const { message } = withoutInside(failure(), { run_id: 'r-1', signal: AbortSignal.abort(), logger })
  assert.not.match(message, PATH)
  assert.equal(logger.lines, [])
})

inside('is no refusal, which user code sees as it is', () => {
  const logger = keeping()
  const refusal = new AppError('not_found', 'No file "a"')
  assert.is(withoutInside(refusal, { run_id: 'r', signal: new AbortController().signal, logger }), refusal)
  assert.equal(logger.lines, [])
})

inside('ends the run without a path of the node', async () => {
  const node = await openNode()
  const build = await deployBuild(node)
  const logger = keeping()
  const { worker, runtime } = openWorker({ ...node, logger })
  runtime.invoke = () => Promise.reject(failure())
  const run = wantedCall(build)
  await worker.start()
  await worker.take(run)
  const { stream_id } = run.plan
  await until(async () => (await node.typesIn(stream_id)).at(-1) === 'RunFailed')
  const last = (await Array.fromAsync(node.store.read(streamOf.stream(stream_id)))).at(-1)?.event
  assert.is(last?.type === 'RunFailed' && last.error.code, 'internal_error')
  assert.not.match(JSON.stringify(last), PATH)
  assert.match(logger.lines.join('\n'), PATH)
  await worker.stop()
  await node.close()
})

inside.run()
