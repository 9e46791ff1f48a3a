"""Where work that takes long is done: in this process, on all its cores, or on a cluster. The answer is the same.

    with netdp.engine("processes", workers=2):
        loss = netdp.pairwise(protocol)

**Engines.** "processes": one worker process per core (loky, as in joblib), the default. "threads": for work that leaves the
interpreter's lock alone. "serial": this thread only. "dask": the workers of a Dask cluster, `scheduler=ADDRESS`.

**The same answer, bit for bit.** What is computed for an item depends on the item and on what all items share, never on the
engine, the number of workers, or which items are computed beside it: chunks are groups of whole items, seeds belong to items,
linear algebra runs on one thread wherever an item runs, and results come in the order of the items. What a search computed
ahead and does not need is thrown away, so even how much was looked at is the same. (On a cluster this asks for the same
versions of netdp, Python, NumPy, SciPy and numba, which is checked, and for processors of one kind, which is yours to see to:
other processors may differ in the last bits, within what every guarantee adds for rounding.)

**When.** Items run here, one by one, until the rest is expected to take more than two seconds (`from_seconds`): only then is
it handed over. So small work pays nothing. Worker processes take one to three seconds to start (they import what they
need), and stay for five minutes in case they are needed again. A chunk takes about a fifth of a second, or one item if that
takes longer.

**What is sent, and to whom.** Python pickles: programs, that is. Between the processes of one user on one machine, over pipes
and files nobody else may read, that is no risk. With "dask" they go over the network to the scheduler you name, its workers
run them as you, and what comes back is unpickled here: *name only a cluster that you control*, on a network you trust, or
with Dask's own TLS (tls://…, with the certificates in Dask's configuration: distributed.comm.tls). Peers of a study never use this
room; nothing on their wire is a pickle.

**When something goes wrong.** An error in a worker is raised here, as the same class. A worker process that is killed: one
`WorkersLost`, with the way out. A Dask worker that is killed: its work is done again by another. Ctrl-C ends the workers.
"""

from .choice import ENGINES, Engine, cores, engine, plain_algebra
from .maps import map_items, team

__all__ = ["ENGINES", "Engine", "cores", "engine", "map_items", "plain_algebra", "team"]
