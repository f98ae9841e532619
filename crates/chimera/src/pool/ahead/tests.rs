use super::*;

const BLOCK_BYTES: u64 = 4096;

fn ahead(bytes: Option<u64>, block_bytes: u64) -> Ahead {
    let options = PoolOptions { populate_ahead_bytes: bytes, ..PoolOptions::default() };
    Ahead::new(&options, block_bytes)
}

#[test]
fn storage_ahead_of_use_follows_what_is_in_use() {
    let ahead = ahead(None, BLOCK_BYTES);
    assert!(!ahead.is_none());
    let expected: [(u64, u64, u64); 8] = [
        (0, 128 << 10, 128 << 10),
        (2 << 20, 128 << 10, 128 << 10),
        (4 << 20, 256 << 10, 256 << 10),
        (64 << 20, 4 << 20, 4 << 20),
        (256 << 20, 16 << 20, 4 << 20),
        (1 << 30, 64 << 20, 4 << 20),
        (2 << 30, 64 << 20, 4 << 20),
        (1 << 40, 64 << 20, 4 << 20),
    ];
    for (used, bytes, step) in expected {
        let used_blocks = used / BLOCK_BYTES;
        assert_eq!(ahead.blocks(used_blocks), bytes / BLOCK_BYTES, "{used} bytes in use");
        assert_eq!(ahead.step_blocks(used_blocks), step / BLOCK_BYTES, "{used} bytes in use");
    }
}

#[test]
fn what_is_asked_for_is_kept_whatever_is_in_use() {
    for used in [0, 1, 1 << 20] {
        let small = ahead(Some(10 * BLOCK_BYTES + 1), BLOCK_BYTES);
        assert_eq!((small.blocks(used), small.step_blocks(used)), (10, 10));
        let large = ahead(Some(64 << 20), BLOCK_BYTES);
        assert_eq!((large.blocks(used), large.step_blocks(used)), (16384, 1024));
        let none = ahead(Some(BLOCK_BYTES - 1), BLOCK_BYTES);
        assert_eq!((none.blocks(used), none.step_blocks(used)), (0, 1));
        assert!(none.is_none());
    }
}

#[test]
fn a_block_larger_than_a_step_is_one() {
    for block_bytes in [256 << 10, 8 << 20, 128 << 20] {
        let ahead = ahead(None, block_bytes);
        assert_eq!((ahead.blocks(0), ahead.step_blocks(0)), (1, 1), "{block_bytes}");
        let most = ((64 << 20) / block_bytes).max(1);
        assert_eq!(ahead.blocks(1 << 20), most, "{block_bytes}");
    }
}
