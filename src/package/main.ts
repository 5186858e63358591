import { buildPackage, tscIn } from './buildPackage.ts'
import { packageDir } from './built.ts'

/** Run by `npm pack`. */
const tsc = tscIn(packageDir)
if (tsc === null) throw new Error('Expected TypeScript to be installed; run npm ci')
await buildPackage(packageDir, tsc)
