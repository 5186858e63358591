import { writeFileSync } from 'node:fs'
import { hash } from 'node:crypto'
import { clock } from '../../../src/clock.ts'
import { AppError } from '../../../src/errors.ts'
import { deployBuild } from '../../../src/commands/builds/deployBuild.ts'
import { uploadBuild } from '../../../src/commands/builds/uploadBuild.ts'
import { abandonEvent } from '../../../src/commands/events/abandonEvent.ts'
import { dispatchEvent } from '../../support/dispatchEvent.ts'
import { publishEvent } from '../../../src/commands/events/publishEvent.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { replayEvent } from '../../../src/commands/events/replayEvent.ts'
import { callFunction } from '../../../src/commands/runs/callFunction.ts'
import { requestChild } from '../../../src/commands/runs/runFunction.ts'
import { storeRequest } from '../../../src/commands/runs/requestRun.ts'
import { storeRunOutput } from '../../../src/commands/runs/storeRunOutput.ts'
import { abandonRun } from '../../../src/commands/runs/abandonRun.ts'
import { beginRun } from '../../../src/commands/runs/beginRun.ts'
import { cancelRun } from '../../../src/commands/runs/cancelRun.ts'
import { claimRun } from '../../../src/commands/runs/claimRun.ts'
import { endRun } from '../../../src/commands/runs/endRun.ts'
import { fireTick } from '../../../src/commands/runs/fireTick.ts'
import { loseWorker } from '../../../src/commands/runs/loseWorker.ts'
import { retryRun } from '../../../src/commands/runs/retryRun.ts'
import { returnRun } from '../../../src/commands/runs/returnRun.ts'
import { emitData } from '../../../src/commands/streams/emitData.ts'
import { isOf, type Recorded } from '../../../src/events/event.ts'
import type { EventOf, EventType } from '../../../src/events/index.ts'
import type { RunPlan } from '../../../src/events/run.ts'
import type { FunctionSpec } from '../../../src/events/project.ts'
import { streamOf } from '../../../src/events/streams.ts'
import type { Claimer } from '../../../src/ports/claimer.ts'
import type { Outcome } from '../../../src/ports/runtime.ts'
import type { Scenario } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'
import { namesOf } from './runsNames.ts'
import { observeRuns } from './runsSeen.ts'
import {
  BUILDS,
  CHILDREN,
  type Ending,
  type EventSetup,
  EVENTS,
  OPENING,
  type RunsCommand,
} from './runsSetup.ts'

const ERROR = { code: 'function_failed', message: 'broke' }
const OUTCOMES: Readonly<Record<Ending, Outcome>> = {
  succeeded: { status: 'succeeded', result: 1 },
  failed: { status: 'failed', error: ERROR },
  lost: { status: 'lost', error: ERROR },
}

/** Events and runs of one environment, through the commands of the service. The scenario takes the place of workers. */
export const openRuns = async (world: World): Promise<Scenario<RunsCommand>> => {
  const { env_id } = await world.openEnv()
  const ids = new Ids()
  const { cause } = ids.caller(env_id, 'runs')
  const project_id = await plantProject(world, env_id, ids)
  const names = namesOf(ids, project_id)
  const workerId = (worker: string): string => ids.of(worker)
  const claimer: Claimer = {
    worker_id: workerId('w0'),
    isOpen: true,
    hasRoom: () => true,
    isFullFor: () => false,
    fullFor: [],
    claiming: (_id, append) => append(),
    take: () => Promise.reject(new Error('Expected no run with a waiting caller')),
    execute: () => {},
  }
  /** The last fact of a type that `isWanted` accepts, as a delivery has it. */
  const delivered = async <Type extends EventType>(
    stream_id: string,
    type: Type,
    isWanted: (event: EventOf<Type>) => boolean,
  ): Promise<Recorded<EventOf<Type>> | undefined> =>
    (await Array.fromAsync(world.store.read(streamOf.stream(stream_id)))).findLast(
      (fact): fact is Recorded<EventOf<Type>> => isOf(fact, type) && isWanted(fact.event),
    )
  const publishedOf = (event: string) =>
    delivered(names.streamId(event), 'EventPublished', ({ event_id }) => event_id === names.eventId(event))
  const requestOf = (run: string) =>
    delivered(names.streamOfRun(run), 'RunRequested', ({ run_id }) => run_id === names.runId(run))

  const publish = async (node: ModelNode, event: string, claim: boolean): Promise<void> => {
    const { type, on, run, by, replays }: EventSetup = EVENTS[event] ?? { type: 'idle' }
    const caller = ids.caller(env_id, event)
    if (replays !== undefined)
      return void (await replayEvent(node, { event_id: names.eventId(replays) }, cause))
    const from = by && { stream_id: names.streamOfRun(by), source: `run:${by}`, by_run_id: names.runId(by) }
    if (from && type === 'svc:call')
      return void (await callFunction(node, { ref: 'm/called', args: [], project_id, ...from }, caller))
    const event_data =
      type === 'svc:call' ? { fn: 'm/called', args: [] } : run && { run_id: names.runId(run) }
    const wanted = { event_type: type, event_data: event_data ?? null, source: 'api' }
    await publishEvent(
      { ...node, claimer: claim ? claimer : null },
      { ...wanted, stream_id: on && names.streamId(on), ...from },
      caller,
    )
  }

  const dispatch = async (node: ModelNode, event: string, worker_id: string): Promise<string[] | null> => {
    const published = await publishedOf(event)
    const plans = published ? await dispatchEvent(node, { published, worker_id }) : null
    return plans && plans.map(({ target }) => `${event}/${'var' in target ? target.var : ''}`).sort()
  }

  const planOf = (run: string): RunPlan => ({
    run_id: names.runId(run),
    stream_id: names.streamOfRun(run),
    run_type: 'call',
    build_id: ids.of('many'),
    project_id,
    project_name: 'shop',
    target: { ns: 'm', var: 'called' },
    attempt: 1,
  })

  const request = async (node: ModelNode, name: string, claim: boolean): Promise<void> => {
    const plan = { ...planOf(name), once: true, input_at: { stream_id: names.streamId(name), revision: 1 } }
    const wanted = { plan, input: { kind: 'args', value: [] }, cause, now: clock.iso() } as const
    await storeRequest(node, wanted, claim ? claimer.worker_id : undefined)
  }

  const asked = new Set<string>()
  /** A child is requested once; its parent does not wait for it. */
  const child = async (node: ModelNode, name: string): Promise<void> => {
    const isNew = !asked.has(name)
    asked.add(name)
    if (!isNew) throw new AppError('conflict', 'The child was requested before')
    const parent = planOf(CHILDREN[name] ?? '')
    const wanted = { ref: 'm/called', args: [], parent, depth: 1 }
    await requestChild(node, wanted, ids.caller(env_id, name))
  }

  const tick = async (node: ModelNode, name: string): Promise<void> => {
    const scheduled = node.views.directory.functionAt(env_id, 'm/first')
    if (scheduled) await fireTick(node, { scheduled, tick: Number(name.slice('tick'.length)) })
  }

  const perform = async (node: ModelNode, command: RunsCommand): Promise<unknown> => {
    switch (command.op) {
      case 'deploy':
        await deployBuild(
          node,
          { project: project_id, build_id: ids.of(command.build) },
          ids.caller(env_id, 'runs'),
        )
        return
      case 'publish':
        return publish(node, command.event, command.claim)
      case 'dispatch':
        return dispatch(node, command.event, workerId(command.worker))
      case 'abandonEvent': {
        const published = await publishedOf(command.event)
        return published && abandonEvent(node, { published })
      }
      case 'tick':
        return tick(node, command.run)
      case 'request':
        return request(node, command.run, command.claim)
      case 'child':
        return child(node, command.run)
      case 'output': {
        const { run, part } = command
        const lines = [{ source: 'stdout', text: String(part), at: clock.iso() }] as const
        const run_id = names.runId(run)
        return storeRunOutput(node, { run_id, writer: run_id, part, lines }, cause)
      }
      case 'loseWorker':
        await node.views.settled()
        await loseWorker(node, { worker_id: workerId(command.worker) })
        return
    }
    const plan = { run_id: names.runId(command.run), stream_id: names.streamOfRun(command.run) }
    switch (command.op) {
      case 'claim': {
        const requested = await requestOf(command.run)
        return (
          requested !== undefined &&
          (await claimRun(node, { requested, worker_id: workerId(command.worker) })) !== null
        )
      }
      case 'begin':
        return beginRun(node, { plan, worker_id: workerId(command.worker) }, cause)
      case 'return':
        return returnRun(node, { plan, worker_id: workerId(command.worker) }, cause)
      case 'abandonRun': {
        const requested = await requestOf(command.run)
        return requested && abandonRun(node, { requested })
      }
      case 'retry':
        return retryRun(node, plan, { cause })
      case 'cancel':
        return cancelRun(node, plan.run_id, cause)
      case 'emit':
        return emitData(node, { ...plan, data_type: 'token', payload: 1 }, cause)
      case 'end': {
        const { worker, outcome } = command
        return endRun(node, { plan, outcome: OUTCOMES[outcome], worker_id: workerId(worker) }, cause)
      }
      default:
        return command satisfies never
    }
  }

  for (const command of OPENING) await perform(world.node(0), command)

  return { perform, observe: (node) => observeRuns(node, { env_id, ids, names }) }
}

/** A project with both builds, of which `many` is deployed. */
const plantProject = async (world: World, env_id: string, ids: Ids): Promise<string> => {
  const node = world.node(0)
  const caller = ids.caller(env_id, 'setup')
  const { project_id } = await createProject(node, { name: 'shop' }, caller)
  const file = `${world.dir}/zip`
  writeFileSync(file, 'zip')
  for (const [name, functions] of Object.entries<readonly FunctionSpec[]>(BUILDS)) {
    const hashed = hash('sha256', `runs ${name}`)
    world.functionsOf.set(hashed, functions)
    const wanted = { project: project_id, file, size: 3, hash: hashed, live: false, build_id: ids.of(name) }
    await uploadBuild(node, wanted, caller)
  }
  await deployBuild(node, { project: project_id, build_id: ids.of('many') }, caller)
  return project_id
}
