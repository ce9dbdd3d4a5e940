# What libtorrent makes of a torrent file: both hashes of the torrent, the file's root in version 2,
# and how much of the file beside it it takes for complete, by its own hashing.
import json
import sys
import time

import libtorrent as lt

torrent, folder = sys.argv[1], sys.argv[2]
info = lt.torrent_info(torrent)
session = lt.session({"enable_dht": False, "enable_lsd": False, "enable_upnp": False,
                      "enable_natpmp": False, "listen_interfaces": "127.0.0.1:0"})
parameters = lt.add_torrent_params()
parameters.ti = info
parameters.save_path = folder
handle = session.add_torrent(parameters)
while not handle.status().is_seeding and handle.status().state in (
        lt.torrent_status.states.checking_files, lt.torrent_status.states.checking_resume_data):
    time.sleep(0.05)
status = handle.status()
print(json.dumps({
    "v1": info.info_hashes().has_v1(),
    "v2": info.info_hashes().has_v2(),
    "root": str(info.files().root(0)),
    "length": info.total_size(),
    "piece_length": info.piece_length(),
    "name": info.files().file_name(0),
    "seeds": [seed["url"] for seed in info.web_seeds()],
    "done": status.total_done,
    "is_seeding": status.is_seeding,
}))
