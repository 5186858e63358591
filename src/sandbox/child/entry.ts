/**
 * The process that runs user code of one environment and build. It receives frames on fd 3 and executes
 * concurrent runs, each identified by its async context. Its checks prevent mistakes only: the security
 * boundary is the service, which checks every frame.
 */
import { fileURLToPath } from 'node:url'
import type { Target } from '../../events/run.ts'
import { activeRuns } from '../../sdk/activeRun.ts'
import type { Input } from '../../sdk/wire.ts'
import type { ParentFrame } from '../protocol.ts'
import { captureOutput } from './capturedOutput.ts'
import { openChannel } from './channel.ts'
import { confine } from './confine.ts'
import { reportEndings } from './endings.ts'
import { ownFinalizers } from './finalizers.ts'
import { callWith, execute } from './execute.ts'
import { openFunctions } from './functions.ts'
import { Leftovers } from './leftovers.ts'
import { installHooks } from './modules.ts'
import { NativeWork } from './nativeWork.ts'
import { installNetwork } from './network.ts'
import { closeNodeTimers } from './nodeTimers.ts'
import { isRefusal } from './refusals.ts'
import { Run } from './run.ts'
import { openStacks, type Stacks } from './stacks.ts'
import { describe } from './thrown.ts'
import { ownTimers } from './timers.ts'

const RUNTIME_DIR = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const SDK_URL = import.meta.resolve(
  import.meta.url.endsWith('.ts') ? '../../sdk/index.ts' : '../../sdk/index.js',
)

const runs = new Map<number, Run>()
let dir = ''
let outputBytes = 0
let faulty = false
let stacks: Stacks
let functionOf: ReturnType<typeof openFunctions>

const onFrame = (frame: ParentFrame): void => {
  switch (frame.type) {
    case 'init':
      dir = frame.dir
      outputBytes = frame.outputBytes
      installHooks(dir, RUNTIME_DIR, SDK_URL)
      stacks = openStacks(dir, RUNTIME_DIR)
      functionOf = openFunctions(stacks)
      channel.send({ type: 'ready' })
      if (frame.forTask) void Promise.all([import('./buildTasks.ts'), import(SDK_URL)])
      return
    case 'invoke':
      return invoke(frame)
    case 'cancel':
      return runs.get(frame.id)?.stop(frame.reason)
    case 'reply':
      return runs.get(frame.id)?.onReply(frame)
    case 'ping':
      return answer(frame.n)
    case 'inspect':
      return void import('./buildTasks.ts').then(({ inspect }) => inspect(channel, stacks, frame.withinMs))
    case 'strip':
      return void import('./buildTasks.ts').then(({ strip }) => strip(channel, dir))
    default:
      return frame satisfies never
  }
}

const channel = openChannel(onFrame)
const leftovers = new Leftovers()
const nativeWork = new NativeWork()

const answer = (n: number): void => {
  const leftover = Math.max(leftovers.take(), nativeWork.take())
  channel.send({ type: 'pong', n, rss: process.memoryUsage.rss(), leftover })
  Run.period++
  if (runs.size > 0 && Run.endings > 0) leftovers.sample()
}

const invoke = (frame: Extract<ParentFrame, { type: 'invoke' }>): void => {
  const run = new Run(frame, channel, outputBytes, () => {
    runs.delete(frame.id)
    run.abandonCalls()
  })
  runs.set(frame.id, run)
  const { target, input } = frame
  void activeRuns.run(run, execute, run, () => valueOf(run, target, input), stacks)
}

const valueOf = async (run: Run, target: Target, input: Input): Promise<unknown> => {
  if ('code' in target) {
    const { evaluate } = await import('./evaluate.ts')
    run.throwIfStopped()
    return evaluate(target.code, target.repl_id, dir)
  }
  const known = functionOf(target)
  const called = typeof known === 'function' ? known : await known
  run.throwIfStopped()
  let bytes: Buffer | undefined
  if (input.kept) {
    bytes = await run.fetch(input.kept)
    run.throwIfStopped()
  }
  return callWith(called, input, bytes)
}

/**
 * Handles an error without a catch, such as one from a timer or an unhandled rejection. Its run fails if it
 * is known and has not ended. The service then replaces this process, unless the code of an ended run was refused, or a call
 * of a stopped one.
 */
const onFault = (thrown: unknown): void => {
  const run = runOfContext()
  if ((!run || run.isStopped) && isRefusal(thrown)) return
  run?.fail('function_failed', describe(thrown, stacks))
  if (!faulty) channel.send({ type: 'fault' })
  faulty = true
}

/** The run of the current async context, which may have ended. */
const ownerOfContext = (): Run | undefined => {
  const run = activeRuns.getStore()
  return run instanceof Run ? run : undefined
}

const runOfContext = (): Run | undefined => {
  const run = ownerOfContext()
  return run?.ended ? undefined : run
}

reportEndings(() => {
  const run = ownerOfContext()
  if (run) channel.sendLast({ type: 'ending', ...(!run.ended && { id: run.id }) })
})
confine()
installNetwork()
process.on('uncaughtException', onFault)
process.on('unhandledRejection', onFault)
closeNodeTimers(ownTimers(ownerOfContext))
ownFinalizers()
nativeWork.watch()
captureOutput(ownerOfContext, (text) => stacks.inOutput(text))
