import { isDeepStrictEqual } from 'node:util'
import type { FunctionSpec } from '../../events/project.ts'
import { slices } from '../../loops/slices.ts'
import { checkNumbers, toBuildFunctions, toFunctionSpecs } from './functionSpec.ts'
import { BadMetadata } from './metadataFields.ts'

/**
 * Rejects with `BadMetadata` for functions that no upload stores: an upload with their metadata would be refused, or would store
 * others. Other work continues meanwhile.
 */
export const checkStoredFunctions = async (specs: readonly FunctionSpec[]): Promise<void> => {
  checkNumbers(specs.length, specs.filter(({ schedule }) => schedule).length)
  await slices.each(specs, checkStored)
  if (toBuildFunctions(specs).some((spec, n) => spec !== specs[n]))
    throw new BadMetadata('Expected functions in the order of their names')
}

const checkStored = (spec: FunctionSpec): void => {
  const { ns, var: name } = spec
  const [uploaded] = toFunctionSpecs(ns, ns.slice(0, 80), [{ var: name, metadata: metadataOf(spec) }])
  if (!isDeepStrictEqual(uploaded, spec))
    throw new BadMetadata(
      `${ns.slice(0, 80)}: ${name.slice(0, 80)}: Expected a function as an upload stores it`,
    )
}

/** The metadata from which an upload makes the function. */
const metadataOf = ({ on_event, secret_headers, webhook, ...same }: FunctionSpec) => {
  const { ns: _, var: __, ...metadata } = same
  return {
    ...metadata,
    'on-event': on_event,
    'secret-headers': secret_headers,
    ...(webhook && {
      webhook: {
        ...webhook,
        ...(webhook.verify && { verify: { [webhook.verify.preset]: webhook.verify.context } }),
        ...(webhook.cors?.[0] === '*' && { cors: '*' }),
      },
    }),
  }
}
