import type { Bundle } from './bundle.ts'
import { openBundler } from './openBundler.ts'
import type { Settings } from './settings.ts'

/** Bundles a project a single time. Rejects with `BundleFailed`. */
export const bundleOnce = async (settings: Settings): Promise<Bundle> => {
  const bundler = await openBundler(settings)
  try {
    return await bundler.rebuild()
  } finally {
    await bundler.close()
  }
}
