import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageDir } from '../../src/package/built.ts'
import { tempDir } from './tempDir.ts'

const execute = promisify(execFile)

/** The tarball of `npm pack`, made now. */
export const npmPack = async (): Promise<string> => {
  const to = tempDir()
  const args = ['pack', '--json', '--pack-destination', to, packageDir]
  const { stdout } = await execute('npm', args, { cwd: packageDir })
  // Scripts print before the list.
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  return join(to, filename)
}

/** Unpacks a tarball into a new directory, which then contains `package`. */
export const unpacked = async (tarball: string): Promise<string> => {
  const dir = tempDir()
  await execute('tar', ['-xzf', tarball, '-C', dir])
  return join(dir, 'package')
}

/**
 * A project with the package installed, as `npm i` does it: `svc` is a folder of `node_modules` beside its dependencies. The
 * dependencies are those of the checkout, because a test needs no registry.
 */
export const install = async (unpackedPackage: string, project: string): Promise<string> => {
  const dir = tempDir()
  await cp(project, dir, { recursive: true })
  const modules = join(dir, 'node_modules')
  await mkdir(modules)
  for (const name of await readdir(join(packageDir, 'node_modules')))
    if (name !== '.cache' && name !== '.package-lock.json')
      await symlink(join(packageDir, 'node_modules', name), join(modules, name))
  await cp(unpackedPackage, join(modules, 'svc'), { recursive: true })
  return dir
}
