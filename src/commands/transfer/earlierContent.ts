import { payloadFolder, payloadsOf } from '../../content/payloads.ts'
import type { Recorded } from '../../events/event.ts'
import type { DomainEvent } from '../../events/index.ts'
import type { PayloadRef } from '../../events/scalars.ts'
import { buildKey, type BuildRef, oldFunctionsKey } from '../../ports/runtime.ts'

/**
 * Version 0.1.0 stored content under keys without its environment, where an import would store it for others too. An export has it
 * under the keys at which this version stores it, and facts with these keys. A list of functions has one key in all exports.
 */
export interface Moved {
  readonly from: string
  readonly to: string
}

/** Fields with references to payloads. */
export const REFS = ['event_data_ref', 'result_ref', 'payload_ref', 'value_ref', 'body_ref'] as const

/** The payloads of a fact that are in the blobs. */
export const refsIn = (fact: DomainEvent): PayloadRef[] =>
  [fact, 'input' in fact ? fact.input : {}].flatMap((holder) =>
    REFS.flatMap((field) => (holder as Partial<Record<string, PayloadRef>>)[field] ?? []),
  )

type OfBuild = Omit<BuildRef, 'env_id'> & { readonly functions_ref?: PayloadRef }

/** The key of the list of functions in an export. */
const listOf = (build: OfBuild) =>
  build.functions_ref && {
    functions_ref: { ...build.functions_ref, key: oldFunctionsKey(buildKey(build)) },
  }

/** The zip and the list of functions of a build. */
export const movedBuild = (build: OfBuild & { readonly storage_path: string }): Moved[] => {
  const { storage_path: zip, functions_ref: list } = build
  const key = buildKey(build)
  return [{ from: zip, to: key }, ...(list ? [{ from: list.key, to: oldFunctionsKey(key) }] : [])]
}

/** The fact as this version would have stored it, and its payloads that are stored elsewhere. */
export const movedFact = (
  { event, at }: Pick<Recorded, 'event' | 'at'>,
  env_id: string,
): { readonly event: DomainEvent; readonly payloads: readonly Moved[] } => {
  if (event.type === 'BuildUploaded')
    return { event: { ...event, storage_path: buildKey(event), ...listOf(event) }, payloads: [] }
  if (event.type === 'BuildDeployed') return { event: { ...event, ...listOf(event) }, payloads: [] }
  const payloads: Moved[] = []
  const within = <Holder extends object>(holder: Holder): Holder => {
    const refs: Partial<Record<string, PayloadRef>> = {}
    for (const field of REFS) {
      const ref = (holder as Partial<Record<string, PayloadRef>>)[field]
      if (!ref || ref.key.startsWith(payloadsOf(env_id))) continue
      const to = `${payloadFolder(env_id, Date.parse(at))}${ref.key.slice(ref.key.lastIndexOf('/') + 1)}`
      payloads.push({ from: ref.key, to })
      refs[field] = { ...ref, key: to }
    }
    return { ...holder, ...refs }
  }
  const own = within(event)
  return { event: 'input' in own ? { ...own, input: within(own.input) } : own, payloads }
}
