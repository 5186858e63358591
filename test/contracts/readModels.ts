import { suite } from '../support/suite.ts'
import type { OpenReadModels } from './readModels/collection.ts'
import { countingContract } from './readModels/counting.ts'
import { findingContract } from './readModels/finding.ts'
import { plansContract } from './readModels/plans.ts'
import { sourceContract } from './readModels/source.ts'
import { storingContract } from './readModels/storing.ts'
import { versionsContract } from './readModels/versions.ts'

export type { OpenReadModels }

/** The rules of `ports/readModels.ts` for every adapter. `open` resolves with read models that may have other users. */
export const readModelsContract = (name: string, open: () => Promise<OpenReadModels>): void => {
  for (const [what, contract] of [
    ['storing', storingContract],
    ['finding', findingContract],
    ['counting', countingContract],
    ['plans', plansContract],
    ['versions', versionsContract],
    ['source', sourceContract],
  ] as const) {
    const each = suite<OpenReadModels>(`${name} read models: ${what}`)
    each.before(async (context) => Object.assign(context, await open()))
    each.after(({ close }) => close())
    contract(each)
    each.run()
  }
}
