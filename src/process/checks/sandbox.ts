import { type Check, ok, warning } from './check.ts'

interface Sandbox {
  readonly tier: string
  readonly reason: string
}

/** `required`: the setting `SVC_SANDBOX`. The process tier is no problem if the operator has chosen it. */
export const checkSandbox = ({ tier, reason }: Sandbox, required: string): Check => {
  const detail = `${tier} tier: ${reason}`
  return tier === 'namespace' || required !== 'auto'
    ? ok('sandbox', detail)
    : warning(
        'sandbox',
        detail,
        'install bubblewrap and allow user namespaces (docs/operations.md, The sandbox), or set SVC_SANDBOX=process',
      )
}
