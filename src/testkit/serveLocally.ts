import { AppError } from '../errors.ts'
import { checkContextKey, demandDeclared, noVariable } from '../events/contextKey.ts'
import { controlOf } from '../domain/controlData.ts'
import { checkEventType, checkTypeName, isControl } from '../events/eventType.ts'
import { FailedRun } from '../events/failedRun.ts'
import type { FunctionSpec } from '../events/project.ts'
import { keyFrom, reusedKey } from '../events/idempotencyKey.ts'
import { sortedKeys } from '../events/sortedKeys.ts'
import { newId } from '../ids.ts'
import { nearest } from '../sandbox/nearestName.ts'
import type { HostCall, RunInfo } from '../sdk/wire.ts'
import type { Outcome } from './localRun.ts'
import type { MemoryFiles } from './memoryFiles.ts'
import type * as Kit from './types.ts'

interface Keyed {
  /** JSON. */
  readonly call: string
  readonly reply: unknown
}

/** The world of the functions of one test. */
export interface World {
  readonly sent: Kit.Sent[]
  readonly emitted: Kit.Emitted[]
  readonly calls: Kit.Called[]
  /** What was sent and called under idempotency keys. */
  readonly keyed: Map<string, Keyed>
  readonly context: ReadonlyMap<string, string>
  readonly files: MemoryFiles
  readonly stubs: ReadonlyMap<string, Kit.AnyFunction>
  readonly runChild: (
    ref: string,
    stub: Kit.AnyFunction,
    args: readonly unknown[],
  ) => Promise<{ readonly run_id: string; readonly outcome: Outcome }>
}

/** Serves a call that a function makes through the SDK, with the checks of the service. */
export const serveLocally = async (
  world: World,
  { spec, info }: { readonly spec: FunctionSpec; readonly info: RunInfo },
  call: HostCall,
): Promise<unknown> => {
  switch (call.op) {
    case 'emit':
      checkTypeName('data_type', call.data_type)
      world.emitted.push({ dataType: call.data_type, payload: call.payload })
      return null
    case 'send':
      checkEventType(call.event_type)
      if (isControl(call.event_type)) controlOf(call.event_type, call.event_data)
      return once(world, call, () => {
        world.sent.push({ type: call.event_type, data: call.event_data })
        return { event_id: newId(), stream_id: info.stream_id }
      })
    case 'call':
      return once(world, call, () => {
        world.calls.push({ by: 'call', ref: call.fn, args: listOf(call.args) })
        return { event_id: newId(), run_id: newId() }
      })
    case 'run': {
      const args = listOf(call.args)
      world.calls.push({ by: 'run', ref: call.fn, args })
      const stub = world.stubs.get(call.fn)
      if (!stub) throw noStub(call.fn, [...world.stubs.keys()])
      const { run_id, outcome } = await world.runChild(call.fn, stub, args)
      if (outcome.status === 'failed') throw new FailedRun(run_id, outcome.error)
      return outcome.result
    }
    case 'context': {
      checkContextKey(call.key)
      demandDeclared(spec.context, call.key, `${spec.ns}/${spec.var}`)
      const value = world.context.get(call.key)
      if (value === undefined) throw noVariable(call.key)
      return value
    }
    case 'files':
      return world.files.serve(call, info.run_id)
    case 'payload':
      throw new AppError('not_found', `No kept value ${call.handle}`)
    default:
      return call satisfies never
  }
}

/** Does it once under one key, as the service does. */
const once = (
  { keyed }: World,
  { idempotency_key: key, ...call }: Extract<HostCall, { op: 'send' | 'call' }>,
  start: () => unknown,
): unknown => {
  if (key === undefined) return start()
  const name = `${call.op} ${keyFrom(key, 'idempotencyKey')}`
  const json = JSON.stringify(sortedKeys(call))
  const earlier = keyed.get(name)
  if (earlier && earlier.call !== json) throw reusedKey('idempotencyKey')
  const reply = earlier ? earlier.reply : start()
  keyed.set(name, { call: json, reply })
  return reply
}

const listOf = (args: unknown): readonly unknown[] => (Array.isArray(args) ? (args as unknown[]) : [])

const noStub = (ref: string, known: readonly string[]): AppError => {
  const likely = nearest(ref, known)
  const shown = JSON.stringify(ref.slice(0, 200))
  const advice =
    likely === undefined ? `pass \`calls: { ${shown}: (…) => … }\` to testRun` : `did you mean "${likely}"?`
  return new AppError('not_found', `run(${shown}): expected a stub in \`calls\`, got none; ${advice}`)
}
