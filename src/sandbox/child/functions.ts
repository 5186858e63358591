import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Target } from '../../events/run.ts'
import { toWebhookRequest } from '../../sdk/input.ts'
import { nearest } from '../nearestName.ts'
import type { FailureCode } from '../protocol.ts'
import type { Input } from '../../sdk/wire.ts'
import { namespacesIn } from './modules.ts'
import type { Stacks } from './stacks.ts'
import { whileLoading } from './timers.ts'
import { describeLoad } from './loadErrors.ts'
import type { Described } from './thrown.ts'

/** The run failed before its function was called. */
export class NotStarted extends Error {
  readonly code: FailureCode
  readonly described: Described

  constructor(code: FailureCode, described: Described) {
    super(described.message)
    this.code = code
    this.described = described
  }
}

const notFound = (message: string): NotStarted => new NotStarted('function_not_found', { message })

/** The likely name of a function that a module does not export. */
const suggestion = (name: string, module: Record<string, unknown>): string => {
  const likely = nearest(
    name,
    Object.keys(module).filter((each) => isFunction(module[each])),
  )
  return likely === undefined ? '' : `; did you mean ${likely}?`
}

type UserFunction = (...args: unknown[]) => unknown

/** Excludes classes, which modules export for other modules and which cannot be called. */
export const isFunction = (value: unknown): value is UserFunction =>
  typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value))

/** Imports a module. An error without a catch in it is reported before: Node does so at the end of the turn. */
const imported = async (path: string): Promise<Record<string, unknown>> => {
  const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>
  await setImmediate()
  return module
}

/** Finds functions of the build by reference. A module is loaded at its first use. */
export const openFunctions = (stacks: Stacks) => {
  const { dir } = stacks.places
  const fileOf = new Map(namespacesIn(dir).map(({ ns, file }) => [ns, file]))
  const found = new Map<string, UserFunction>()

  const load = async (ns: string, name: string): Promise<UserFunction> => {
    const file = fileOf.get(ns)
    if (file === undefined) throw notFound(`Expected a module for namespace ${ns}, got none`)
    let module: Record<string, unknown>
    try {
      module = await whileLoading(() => imported(join(dir, file)))
    } catch (thrown) {
      throw new NotStarted('load_failed', describeLoad(thrown, file, stacks))
    }
    const value = Object.hasOwn(module, name) ? module[name] : undefined
    if (!isFunction(value))
      throw notFound(`Expected ${file} to export a function ${name}, got none${suggestion(name, module)}`)
    found.set(`${ns}/${name}`, value)
    return value
  }

  return ({ ns, var: name }: Extract<Target, { ns: string }>): UserFunction | Promise<UserFunction> =>
    found.get(`${ns}/${name}`) ?? load(ns, name)
}

/** The value is a list of arguments, or the data of an `svc:call` event. */
const listIn = (value: unknown): readonly unknown[] => {
  const args = Array.isArray(value) ? value : (value as { args?: unknown } | null)?.args
  return Array.isArray(args) ? args : []
}

/** Returns the arguments of a function. `kept` are the bytes of the input's large value. */
export const argumentsOf = (input: Input, kept?: Buffer): readonly unknown[] => {
  switch (input.kind) {
    case 'args':
      return kept ? listIn(JSON.parse(kept.toString())) : input.args
    case 'event':
      return [kept ? { ...input.event, data: JSON.parse(kept.toString()) as unknown } : input.event]
    case 'webhook':
      return [toWebhookRequest({ ...input.request }, kept)]
    default:
      return input satisfies never
  }
}
